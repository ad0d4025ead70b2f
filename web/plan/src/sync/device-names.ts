/**
 * What devices are called. Which names there are, the server says; until it was asked, a device is
 * known by the digits that it stamps its changes with.
 */
import type { WarrenDatabase } from "@warren/client";

const DIGITS = /^[0-9a-f]{16}$/;

export function deviceName(device: string): string {
  return device === "" || DIGITS.test(device) ? "another device" : device;
}

/**
 * Loads, and again with what the server says, if a device has no name yet. `load` returns the
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
    // Without the server they stay "another device".
    return;
  }
  await load();
}
