"""An ordinary Django app that knows nothing about Warren."""
