"""Writes sealed-delivery.json: deliveries that Format 22 seals, computed without Warren's code.

X-Wing and HPKE are written out here from their specifications, on other libraries than the Rust
code uses. The same run gives the same file, because the script takes each random value from a
hash. It also checks its X-Wing against the first vector of the draft.

    pip install cryptography==48.0.0 kyber-py==1.2.0
    python3 sealed_delivery.py > sealed-delivery.json
"""

import hashlib
import json
import sys

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hmac import HMAC
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from kyber_py.ml_kem import ML_KEM_768

# X-Wing: draft-connolly-cfrg-xwing-kem, section 5.

XWING_LABEL = b"\\.//^\\"


def x25519(scalar, point):
    private = X25519PrivateKey.from_private_bytes(scalar)
    return private.exchange(X25519PublicKey.from_public_bytes(point))


def x25519_public(scalar):
    public = X25519PrivateKey.from_private_bytes(scalar).public_key()
    return public.public_bytes(Encoding.Raw, PublicFormat.Raw)


def xwing_public_key(seed):
    expanded = hashlib.shake_256(seed).digest(96)
    ml_kem_public, _ = ML_KEM_768.key_derive(expanded[:64])
    return ml_kem_public + x25519_public(expanded[64:])


def xwing_encapsulate(public_key, randomness):
    ml_kem_public, x25519_recipient = public_key[:1184], public_key[1184:]
    ml_kem_secret, ml_kem_ciphertext = ML_KEM_768._encaps_internal(ml_kem_public, randomness[:32])
    x25519_ephemeral = x25519_public(randomness[32:])
    x25519_secret = x25519(randomness[32:], x25519_recipient)
    shared = hashlib.sha3_256(
        ml_kem_secret + x25519_secret + x25519_ephemeral + x25519_recipient + XWING_LABEL
    )
    return shared.digest(), ml_kem_ciphertext + x25519_ephemeral


# HPKE: RFC 9180, sections 4 and 5.1, in mode Base.

KEM, KDF, AEAD = 0x647A, 0x0001, 0x0003
SUITE = b"HPKE" + b"".join(number.to_bytes(2, "big") for number in (KEM, KDF, AEAD))


def extract(salt, material):
    # HMAC pads an empty key with zeros, as HKDF requires for an empty salt.
    mac = HMAC(salt or bytes(32), hashes.SHA256())
    mac.update(material)
    return mac.finalize()


def expand(key, info, length):
    return HKDFExpand(hashes.SHA256(), length, info).derive(key)


def labeled_extract(salt, label, material):
    return extract(salt, b"HPKE-v1" + SUITE + label + material)


def labeled_expand(key, label, info, length):
    return expand(key, length.to_bytes(2, "big") + b"HPKE-v1" + SUITE + label + info, length)


def hpke_seal(public_key, randomness, info, plaintext):
    shared_secret, encapsulated = xwing_encapsulate(public_key, randomness)
    mode_base = b"\0"
    context = mode_base + labeled_extract(b"", b"psk_id_hash", b"")
    context += labeled_extract(b"", b"info_hash", info)
    secret = labeled_extract(shared_secret, b"secret", b"")
    key = labeled_expand(secret, b"key", context, 32)
    # The first message of a context uses the base nonce as it is.
    nonce = labeled_expand(secret, b"base_nonce", context, 12)
    return encapsulated + ChaCha20Poly1305(key).encrypt(nonce, plaintext, b"")


# Format 22.


def leb128(number):
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


ZSTD_MAGIC = 0xFD2FB528.to_bytes(4, "little")
RAW, RLE = 0, 1


def zstd_block(kind, size, content, is_last):
    """A block of RFC 8878, section 3.1.1.2."""
    return (size << 3 | kind << 1 | is_last).to_bytes(3, "little") + content


def frame_with_size(message):
    """A frame that states its size in 4 bytes, with one block that is not compressed."""
    single_segment = 0b10_1_0_0_0_00
    size = len(message).to_bytes(4, "little")
    return ZSTD_MAGIC + bytes([single_segment]) + size + zstd_block(RAW, len(message), message, 1)


def frame_without_size(start, byte, count):
    """A frame with a window of 128 KiB that does not state its size: `start`, then a run."""
    window = bytes([7 << 3])
    blocks = zstd_block(RAW, len(start), start, 0) + zstd_block(RLE, count, byte, 1)
    return ZSTD_MAGIC + b"\0" + window + blocks


def plaintext_of(delivery, frame):
    sender, recipient = delivery["sender"].encode(), delivery["recipient"].encode()
    return (
        delivery["received_ms"].to_bytes(8, "big")
        + leb128(len(sender))
        + sender
        + leb128(len(recipient))
        + recipient
        + leb128(len(bytes.fromhex(delivery["message"])))
        + frame
    )


def random_bytes(name, length):
    return hashlib.shake_256(b"sealed delivery vectors: " + name.encode()).digest(length)


def case(name, sender, recipient, received_ms, message, frame):
    key = random_bytes(name + " key", 32)
    vault = random_bytes(name + " vault", 16).hex()
    randomness = random_bytes(name + " randomness", 64)
    # HKDF without a salt: a salt of zeros.
    secret_key = expand(extract(b"", key), b"warren mail secret key 1", 32)
    public_key = xwing_public_key(secret_key)
    delivery = {
        "received_ms": received_ms,
        "sender": sender,
        "recipient": recipient,
        "message": message.hex(),
    }
    info = b"warren mail delivery 1" + vault.encode()
    sealed = b"\x01" + hpke_seal(public_key, randomness, info, plaintext_of(delivery, frame))
    return {
        "name": name,
        "vault_key": key.hex(),
        "vault": vault,
        "secret_key": secret_key.hex(),
        "public_key": public_key.hex(),
        "randomness": randomness.hex(),
        "sealed": sealed.hex(),
        "delivery": delivery,
    }


def draft_vector():
    """Checks X-Wing here against the first vector of the draft, and returns its keys."""
    seed = bytes.fromhex("7f9c2ba4e88f827d616045507605853ed73b8093f6efbc88eb1a6eacfa66ef26")
    randomness = bytes.fromhex(
        "3cb1eea988004b93103cfb0aeefd2a686e01fa4a58e8a3639ca8a1e3f9ae57e2"
        "35b8cc873c23dc62b8d260169afa2f75ab916a58d974918835d25e6a435085b2"
    )
    public_key = xwing_public_key(seed)
    shared_secret, _ = xwing_encapsulate(public_key, randomness)
    digest = hashlib.sha256(public_key).hexdigest()
    assert digest == "2e816deebcd76c5c80d0cd2d174478871658e8e2ff42bc9d4a6e486372e856bb"
    expected = "d2df0522128f09dd8e2c92b1e905c793d8f57a54c3da25861f10bf4ca613e384"
    assert shared_secret.hex() == expected
    return {"seed": seed.hex(), "public_key": public_key.hex()}


def main():
    text = b"Return-Path: <a@example.org>\r\nSubject: hello\r\n\r\nHello.\r\n"
    odd = b"Subject: \xff\x00 \xc3\xa9\n\nbare line feeds\n"
    long_address = "l" * 243 + "@example.org!"
    start = b"Subject: many\r\n\r\n"
    vectors = {
        "xwing_draft": draft_vector(),
        "deliveries": [
            case("a message", "a@example.org", "b@example.net", 1_795_248_000_000, text,
                 frame_with_size(text)),
            case("a bounce with 8-bit bytes", "", "b\u00e9@example.net", 0, odd,
                 frame_with_size(odd)),
            case("the longest address, the latest time and an empty message", long_address,
                 long_address, 2**64 - 1, b"", frame_with_size(b"")),
            case("a frame without a size", "a@example.org", "b@example.net", 1, start + b"a" * 3000,
                 frame_without_size(start, b"a", 3000)),
        ],
    }
    json.dump(vectors, sys.stdout, indent=1, ensure_ascii=False)
    print()


main()
