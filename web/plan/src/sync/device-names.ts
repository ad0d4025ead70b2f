/**
 * Finds the names of devices. Names come from the server; until it was asked, a device is known by
 * the digits that are in the timestamps of its changes.
 */
import type { WarrenDatabase } from "@warren/client";

const DIGITS = /^[0-9a-f]{16}$/;

export function deviceName(device: string): string {
  return device === "" || DIGITS.test(device) ? "another device" : device;
}

/**
 * Loads, and loads again after asking the server if a device has no name yet. `load` returns the
 * devices that it has found.
 */
export async function loadNamed(
  db: WarrenDatabase,
  load: () => Promise<readonly string[]>,
): Promise<void> {
  const devices = await load();
  if (db.status.value.account === undefined || !devices.some((one) => DIGITS.test(one))) return;
  try {
    await db.syncStatus();
  } catch {
    // Without the server, unnamed devices stay "another device".
    return;
  }
  await load();
}
