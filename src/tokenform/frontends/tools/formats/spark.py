"""Spark X2.5: GLM 4.7's elements, in a template of other roles.

Source: the parser of SGLang (`spark25`) and what it is told by in the template of XHToken/Spark-X2.5-4B.
"""

from dataclasses import replace

from tokenform.frontends.tools.formats.glm47 import FORMAT as GLM47

FORMAT = replace(
    GLM47,
    name="spark",
    models="Spark X2.5",
    template=("<arg_key>", "<|Bot|>"),
)
