"""Models with every kind of relation that Django has, and with the keys that it adds by default."""

from django.db import models


class Author(models.Model):
    name = models.CharField(max_length=100)


class Tag(models.Model):
    name = models.CharField(max_length=100)


class Book(models.Model):
    title = models.CharField(max_length=100)
    pages = models.PositiveIntegerField(default=0)
    author = models.ForeignKey(Author, on_delete=models.CASCADE)
    follows = models.ForeignKey("self", null=True, on_delete=models.SET_NULL)
    tags = models.ManyToManyField(Tag)


class Comic(Book):
    """Multi-table inheritance: a comic has the same key as its book."""

    artist = models.ForeignKey(Author, on_delete=models.CASCADE)


class Cover(models.Model):
    book = models.OneToOneField(Book, on_delete=models.CASCADE, primary_key=True)
    colour = models.CharField(max_length=20)


class Draft(models.Model):
    book = models.ForeignKey(Book, on_delete=models.CASCADE)
    words = models.TextField()


class Genre(models.Model):
    name = models.CharField(max_length=100, unique=True)
    about = models.TextField()


class Pitch(models.Model):
    genre = models.ForeignKey(Genre, on_delete=models.CASCADE)
    words = models.TextField()
    note = models.TextField()
