"""What one entry of each loss costs, in float64 as its formula is written. A file has the name of its loss.

`cost(logit, target, weight of a present label, γ of an unknown one (None: it is known), the options that were set)`;
VARIANTS are options of the loss's own under which it is compared as well.
"""

from importlib import import_module
from pkgutil import iter_modules

LITERAL = {module.name: import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)}
