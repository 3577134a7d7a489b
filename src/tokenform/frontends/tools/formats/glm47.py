"""GLM 4.7 and 5: GLM 4.5's elements without any whitespace between them.

Source: the chat template of zai-org/GLM-4.7.
"""

from tokenform.frontends.tools.formats.glm45 import FORMAT as GLM45
from tokenform.frontends.tools.formats.glm45 import MARKERS
from tokenform.frontends.tools.layout import Format, Name, Tagged, Wire

FORMAT = Format(
    name="glm47",
    models="GLM 4.7, GLM 5",
    wire=Wire(
        call=(
            "<tool_call>",
            Name(),
            Tagged(before="<arg_key>", middle="</arg_key><arg_value>", after="</arg_value>", markers=MARKERS),
            "</tool_call>",
        ),
    ),
    special=MARKERS,
    dropped=GLM45.dropped,
    template=("<arg_key>", "</arg_key><arg_value>"),
)
