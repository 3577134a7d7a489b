"""A bound, and a validator in Python, both kept to: the text is drawn again, the model is not asked.

Source: instructor, page "Retry mechanisms", Basic Retry Example: 22 lines."""

from pydantic import BaseModel, Field, field_validator

import tokenform as tf


class Product(BaseModel):
    name: str
    price: float = Field(gt=0)

    @field_validator("name")
    @classmethod
    def long_enough(cls, v):
        if len(v) < 3:
            raise ValueError("a name has at least 3 characters")
        return v


product = tf.generate("The product is a pen, the price is -5 euros.", schema=Product).value

assert product.price > 0 and len(product.name) >= 3
