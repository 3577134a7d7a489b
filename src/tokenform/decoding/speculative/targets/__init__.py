"""What is mixed into the model's distribution before the mask: a second model or prompt, penalties."""

from .anchored import Anchored
from .base import Mixture
from .mixtures import ContextAware, Contrastive, Safety
from .penalties import Penalties

__all__ = ["Anchored", "ContextAware", "Contrastive", "Mixture", "Penalties", "Safety"]
