"""The one exception of this package: something the user has to know, with what they can do about it."""


class ImageError(Exception):
    """The image could not be built or pushed; the message says what to do next."""
