/**
 * The Plan app as its tests see it: the elements that a user can find on the screen, by name.
 */
import assert from "node:assert/strict";
import { eventually, expect } from "./expect.js";
import type { Locator, Page } from "playwright-core";
import { PASSWORD, type BrowserDevice } from "../harness.js";

export interface PlanScreen {
  readonly page: Page;
  readonly pill: Locator;
  readonly toast: Locator;
  readonly items: Locator;
  /** Returns the row of an item. */
  item(title: string): Locator;
  /** Opens an item and waits for the cursor in its title: keys pressed earlier may end up there. */
  openItem(title: string): Promise<void>;
  add(title: string): Promise<void>;
  addList(name: string): Promise<void>;
  goTo(name: string): Promise<void>;
  /** Creates an account; returns the phrase if it is end-to-end encrypted. */
  signUp(login: string, encryption: "e2ee" | "plaintext"): Promise<string | undefined>;
  /** Signs in, with a recovery phrase if there is one. */
  signIn(login: string, password?: string, phrase?: string): Promise<void>;
  /** Answers the dialog that asks for the recovery phrase. */
  enterPhrase(words: string): Promise<void>;
  /** Opens the sync dialog with the pill. */
  openSync(): Promise<void>;
  openSettings(): Promise<void>;
  close(): Promise<void>;
  /** Returns the titles on the screen, in their order. */
  titles(): Promise<string[]>;
}

/** Matches the console errors of a server that refuses or cannot be reached. */
export const REFUSED = /Failed to load resource|ERR_|net::/;

/** Runs the code in the page's worker, before the worker's own script. */
export async function prependToWorker(device: BrowserDevice, code: string): Promise<void> {
  await device.context.route(/worker[^/]*\.js$/, async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, body: `${code}\n${await response.text()}` });
  });
}

/** Makes a worker store its databases in memory, as in browsers that have no files for pages. */
export const WITHOUT_FILES = "delete StorageManager.prototype.getDirectory;";

/** Opens a device of a new account, with one item that the server has. */
export async function signedUp(device: BrowserDevice, login: string): Promise<PlanScreen> {
  device.expectErrors(REFUSED);
  const plan = await openPlan(device);
  await plan.signUp(login, "plaintext");
  await plan.add(`Of ${login}`);
  await expect(plan.pill).toHaveText("Synced");
  return plan;
}

export async function openPlan(device: BrowserDevice, path = "/#/all"): Promise<PlanScreen> {
  return planOn(await device.open(path));
}

export async function planOn(page: Page): Promise<PlanScreen> {
  await page.getByTestId("app").waitFor();
  const pill = page.getByTestId("sync-pill").first();
  const button = (name: string | RegExp): Locator =>
    page.getByRole("button", { name, exact: true });
  const plan: PlanScreen = {
    page,
    pill,
    toast: page.getByTestId("toast"),
    items: page.getByTestId("item"),
    item: (title) => page.getByTestId("item").filter({ hasText: title }),
    openItem: async (title) => {
      await plan.item(title).getByRole("button").click();
      await eventually(async () => {
        assert.equal(await page.evaluate(() => document.activeElement?.id), "panel-title");
      });
    },
    add: async (title) => {
      await page.getByLabel("Add an item", { exact: true }).fill(title);
      await page.keyboard.press("Enter");
      await plan.item(title).first().waitFor();
    },
    addList: async (name) => {
      await button("New list").click();
      await page.getByLabel("Name", { exact: true }).fill(name);
      await button("Create list").click();
      await expect(page.getByTestId("view-title")).toHaveText(name);
    },
    goTo: async (name) => {
      await page.getByRole("link", { name }).first().click();
      await expect(page.getByTestId("view-title")).toHaveText(name);
    },
    signUp: async (login, encryption) => {
      await fillAccount(plan, "Create account", login, PASSWORD);
      const wants = page.getByRole("checkbox", { name: /End-to-end encryption/ });
      await wants.setChecked(encryption === "e2ee");
      await page.locator("form").getByRole("button", { name: "Create account" }).click();
      if (encryption === "plaintext") {
        await page.getByTestId("account").waitFor({ state: "detached" });
        return undefined;
      }
      return writeDown(page);
    },
    signIn: async (login, password = PASSWORD, phrase = undefined) => {
      await fillAccount(plan, "Sign in", login, password);
      if (phrase !== undefined) {
        await page.getByRole("checkbox", { name: /I have a recovery phrase/ }).check();
        await page.getByLabel("Recovery phrase", { exact: true }).fill(phrase);
      }
      await page.locator("form").getByRole("button", { name: "Sign in" }).click();
    },
    enterPhrase: async (words) => {
      const dialog = page.getByTestId("enter-phrase");
      await dialog.getByLabel("Recovery phrase").fill(words);
      await dialog.getByRole("button", { name: "Unlock" }).click();
    },
    openSync: async () => {
      await pill.click();
      await page.getByTestId("sync").waitFor();
    },
    openSettings: async () => {
      await button("Settings").click();
      await page.getByTestId("settings").waitFor();
    },
    close: () => page.keyboard.press("Escape"),
    titles: () => page.locator(".row-title").allTextContents(),
  };
  return plan;
}

/**
 * Returns the contents of the files of the page's origin; those of open databases cannot be read.
 */
export function filesText(page: Page): Promise<string> {
  return page.evaluate(async () => {
    const found: string[] = [];
    const walk = async (folder: FileSystemDirectoryHandle): Promise<void> => {
      for await (const entry of folder.values()) {
        if (entry instanceof FileSystemFileHandle) {
          found.push(new TextDecoder("latin1").decode(await (await entry.getFile()).arrayBuffer()));
        } else {
          await walk(entry as FileSystemDirectoryHandle);
        }
      }
    };
    await walk(await navigator.storage.getDirectory());
    return found.join("\n");
  });
}

/** Reads the new recovery phrase from the screen, and answers the questions about it. */
export async function writeDown(page: Page): Promise<string> {
  const dialog = page.getByTestId("phrase");
  const list = dialog.getByTestId("words").getByRole("listitem");
  await expect(list).toHaveCount(24);
  const words = (await list.allTextContents()).join(" ");
  await dialog.getByRole("button", { name: "I’ve written it down" }).click();
  await typeWords(page, words);
  await dialog.getByRole("button", { name: "Continue" }).click();
  await expect(dialog).toBeGone();
  return words;
}

/** Types the words that are asked for. */
export async function typeWords(page: Page, phrase: string): Promise<void> {
  const words = phrase.split(" ");
  const check = page.getByTestId("words-check");
  const labels = check.locator("label");
  await expect(labels).toHaveCount(3);
  for (const label of await labels.allTextContents()) {
    const place = Number(label.replace("Word ", ""));
    await check.getByLabel(label, { exact: true }).fill(words[place - 1] ?? "");
  }
}

/** Opens the account form, and fills it in. */
export async function fillAccount(
  plan: PlanScreen,
  action: string,
  login: string,
  password: string,
): Promise<void> {
  const { page } = plan;
  await plan.openSync();
  await page.getByTestId("sync").getByRole("button", { name: action, exact: true }).click();
  const account = page.getByTestId("account");
  await account.getByLabel("Name", { exact: true }).fill(login);
  await account.getByLabel("Password").fill(password);
}
