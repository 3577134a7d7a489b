"""Target transforms: from logits to the law that is verified."""

from .anchored import Anchored
from .base import Mixture, Target, Transform
from .mask import Ban, Mask
from .mixtures import ContextAware, Contrastive, Safety
from .penalties import Penalties
from .temperature import Temperature
from .truncation import MinP, TopK, TopP

__all__ = [
    "Anchored",
    "Ban",
    "ContextAware",
    "Contrastive",
    "Mask",
    "MinP",
    "Mixture",
    "Penalties",
    "Safety",
    "Target",
    "Temperature",
    "TopK",
    "TopP",
    "Transform",
]
