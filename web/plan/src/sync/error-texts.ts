/**
 * What a failed call means to people, by its code.
 */
import { WarrenError, type ErrorCode } from "@warren/client";

const TEXTS: Readonly<Partial<Record<ErrorCode, string>>> = {
  account_exists:
    "There is an account with this name already. Sign in instead, or choose another name.",
  account_not_encrypted:
    "The server says that this account is not encrypted from end to end, but your items are. " +
    "Nothing was sent: check that this is your account.",
  busy: "The server or another tab is busy just now. Try again in a moment.",
  disk_full:
    "There is no room left on this device, and nothing of this was saved. Free some and try again.",
  encryption_undecided: "This account has no items yet: say how it begins.",
  engine_unavailable:
    "A part of this page could not be loaded. Check the connection, then load the page again.",
  internal: "The server had a fault. Try again in a moment.",
  invalid_login:
    "A name has 1 to 64 letters, digits or . _ @ + -, and begins with a letter or digit.",
  invalid_password: "A password has at least 8 characters.",
  invalid_recovery_phrase:
    "These are not the words of a recovery phrase: check the spelling and that all 24 are there.",
  invalid_token: "This device was signed out. Sign in again first.",
  proxy_body_limit:
    "A proxy in front of the server refuses a change as too large. Its limit can be raised.",
  quota_exceeded:
    "The account has no room left. Revoke a device you don’t use, or ask the operator.",
  recovery_phrase_in_use: "This device has another phrase already.",
  recovery_phrase_required: "Your items are encrypted from end to end: enter your recovery phrase.",
  recovery_phrase_unverified:
    "There is nothing on the server yet that this phrase opens. Open Plan on the device that " +
    "made it, then try again.",
  registration_closed: "Only the operator of this server makes accounts here.",
  server_damaged:
    "A file on the server is damaged, and its operator has to look at it. Your changes stay here.",
  server_disk_full:
    "The server’s disk is full. What you change is kept here and sent when there is room again.",
  too_many_attempts: "Too many attempts. Wait a little, then try again.",
  unavailable: "The server is restarting, or its disk has failed. Try again in a moment.",
  unexpected_response:
    "Something else answered in the server’s place: a proxy, or a network that wants a login.",
  unreachable: "The server cannot be reached. Check the connection and try again.",
  wrong_password: "The name or the password is wrong.",
  wrong_recovery_phrase: "This is not the phrase your items are encrypted with.",
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
