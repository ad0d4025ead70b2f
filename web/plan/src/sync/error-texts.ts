/**
 * Maps the error codes of failed calls to texts for users.
 */
import { WarrenError, type ErrorCode } from "@warren/client";

const TEXTS: Readonly<Partial<Record<ErrorCode, string>>> = {
  account_differs: "The items here belong to another account. Sign in with that account.",
  account_exists: "This name is taken. Sign in, or choose another name.",
  account_not_encrypted:
    "Your items are end-to-end encrypted, but this account isn’t. Nothing was sent. Check that " +
    "this is your account.",
  busy: "The server or another tab is busy. Try again in a moment.",
  disk_full:
    "Storage is full, so your changes were not saved. Free up space on this device and try again.",
  encryption_undecided: "This account is empty. Choose how to set it up.",
  engine_unavailable:
    "Part of this page could not be loaded. Check your connection, then reload the page.",
  internal: "Something went wrong. Try again in a moment.",
  invalid_login:
    "Names have 1 to 64 letters, digits or . _ @ + - and must start with a letter or digit.",
  invalid_password: "Your password needs at least 8 characters.",
  invalid_recovery_phrase:
    "That’s not a valid recovery phrase. Check the spelling and that you entered all 24 words.",
  invalid_token: "This device was signed out. Sign in again.",
  proxy_body_limit:
    "A change is too large for the server’s proxy. Ask the administrator to raise its limit.",
  quota_exceeded:
    "Your account has reached its limit. Remove a device you don’t use, or ask the administrator.",
  recovery_phrase_in_use: "This device already uses a different recovery phrase.",
  recovery_phrase_required: "Your items are end-to-end encrypted. Enter your recovery phrase.",
  recovery_phrase_unverified:
    "Your recovery phrase can’t be checked because the account is still empty. Open Plan on the " +
    "device where you created the phrase, then try again.",
  registration_closed: "Sign-up is closed on this server. Ask the administrator for an account.",
  server_damaged:
    "A file on the server is damaged. Ask the administrator to check it. Your changes stay here.",
  server_disk_full: "The server is out of space. Your changes are saved here and will sync later.",
  too_many_attempts: "Too many attempts. Wait a moment, then try again.",
  unavailable: "The server is temporarily unavailable. Try again in a moment.",
  unexpected_response:
    "A proxy or your network answered instead of the server. Does your network require a login?",
  unreachable: "Can’t reach the server. Check your connection and try again.",
  wrong_password: "Wrong name or password.",
  wrong_recovery_phrase: "This recovery phrase doesn’t match your items.",
};

export function codeOf(error: unknown): ErrorCode | undefined {
  return error instanceof WarrenError ? error.code : undefined;
}

export function errorText(error: unknown): string | undefined {
  if (error === undefined) return undefined;
  const code = codeOf(error);
  const known = code !== undefined && Object.hasOwn(TEXTS, code) ? TEXTS[code] : undefined;
  return known ?? (error instanceof Error ? error.message : String(error));
}
