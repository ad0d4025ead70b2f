"""An ordinary Django app: nothing in it knows of Warren."""
