/** Tests Plan with the keyboard, with a finger, in other writing systems, and on paper. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Locator, Page } from "playwright-core";
import { bed } from "./harness.js";
import { eventually, expect } from "./plan/expect.js";
import { openPlan } from "./plan/screen.js";

const here = bed();

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true };

test("the title has the cursor as soon as an opened item is on the screen", async () => {
  const plan = await openPlan(await here.device());
  await plan.add("two");
  const row = plan.item("two").getByRole("button");
  const first = await row.evaluate(
    (button: HTMLElement) =>
      new Promise((resolve) => {
        const isOpen = new MutationObserver(() => {
          if (document.querySelector("#panel-title") !== null) resolve(document.activeElement?.id);
        });
        isOpen.observe(document.body, { childList: true, subtree: true });
        button.click();
      }),
  );
  assert.equal(first, "panel-title");
});

test("an opened item has the cursor in its title, and keys change nothing else", async () => {
  const plan = await openPlan(await here.device());
  const { page } = plan;
  await plan.add("two");
  await page.keyboard.press("Escape");
  await page.keyboard.press("ArrowDown");
  await eventually(async () => assert.match(await focusedClass(page), /row-main/));
  // Pressed at once, before the item is on the screen.
  for (const key of ["Enter", "x", "Delete", "n"]) await page.keyboard.press(key);
  await eventually(async () => assert.equal(await focusedId(page), "panel-title"));
  await page.keyboard.type(" fixx");
  await page.keyboard.press("Backspace");
  await page.keyboard.press("Enter");
  // No element has the cursor, and the item is still open.
  for (const key of ["x", "Backspace", "Delete", "m", " "]) await page.keyboard.press(key);
  await page.keyboard.press("Escape");
  await expect(page.getByTestId("item-panel")).toBeGone();
  await eventually(async () => assert.match((await plan.titles()).join(), /^two.* fix$/));
  assert.equal(await plan.item("two").getByRole("checkbox").isChecked(), false);

  await eventually(async () => assert.match(await focusedClass(page), /row-main/));
  await page.keyboard.press("Backspace");
  await page.keyboard.press("x");
  await expect(plan.toast).toHaveText("Done:");
  await page.keyboard.press("Control+z");
  await expect(plan.item("two")).toBeVisible();
  await plan.item("two").getByRole("button").click();
  await eventually(async () => assert.equal(await focusedId(page), "panel-title"));
  await page.keyboard.press("Escape");
  await eventually(async () => assert.match(await focusedClass(page), /row-main/));
  await page.keyboard.press("Delete");
  await expect(plan.toast).toHaveText("Deleted “two");
});

test("the way back closes what lies on top, and then leaves", async () => {
  const device = await here.device(PHONE);
  const plan = await openPlan(device);
  const { page } = plan;
  await plan.add("Milk");
  const drawer = page.getByRole("dialog", { name: "Views and lists" });
  const panel = page.getByTestId("item-panel");
  await page.getByRole("button", { name: "Lists", exact: true }).click();
  await expect(drawer).toBeVisible();
  await page.goBack();
  await expect(drawer).toBeGone();

  await plan.item("Milk").getByRole("button").click();
  await panel.getByRole("button", { name: "History" }).click();
  await expect(page.getByTestId("history")).toBeVisible();
  await page.goBack();
  await expect(page.getByTestId("history")).toBeGone();
  await expect(panel).toBeVisible();
  await page.goBack();
  await expect(panel).toBeGone();

  // A link in the drawer is a step of its own, which one step back reverts.
  await page.getByRole("button", { name: "Lists", exact: true }).click();
  await plan.goTo("Today");
  await expect(drawer).toBeGone();
  await page.goBack();
  await expect(page.getByTestId("view-title")).toHaveText("All");

  await page.getByRole("button", { name: "Search", exact: true }).click();
  await page.getByRole("searchbox").fill("milk");
  await page.goBack();
  await expect(page.getByTestId("view-title")).toHaveText("All");

  // A layer that was closed with its own button is not a step any more.
  await plan.item("Milk").getByRole("button").click();
  await page.getByLabel("Close item").click();
  await expect(panel).toBeGone();
  await page.goBack();
  await page.waitForURL("about:blank");
});

test("a page that a dialog leads to takes the dialog's place in the history", async () => {
  const plan = await openPlan(await here.device());
  const { page } = plan;
  await plan.addList("First");
  await plan.addList("Second");
  await page.goBack();
  await expect(page.getByTestId("view-title")).toHaveText("First");
  await page.goBack();
  await expect(page.getByTestId("view-title")).toHaveText("All");
});

test("keys of an input method are no commands, and submit nothing", async () => {
  const plan = await openPlan(await here.device());
  const { page } = plan;
  await plan.add("Milk");
  const row = plan.item("Milk").getByRole("button");
  await row.focus();
  for (const key of ["x", "Delete", "Enter"]) await compose(row, key);
  await expect(plan.item("Milk")).toBeVisible();
  assert.equal(await page.getByTestId("item-panel").count(), 0);
  await row.click();
  const title = page.getByLabel("Title", { exact: true });
  await eventually(async () => assert.equal(await focusedId(page), "panel-title"));
  await compose(title, "Enter");
  await compose(title, "Escape");
  assert.equal(await focusedId(page), "panel-title");
  assert.equal(await compose(page.locator("#quick-add"), "Enter"), "prevented");
});

test("several lines that are pasted are several items, in one step", async () => {
  const plan = await openPlan(await here.device());
  const input = plan.page.locator("#quick-add");
  await paste(input, "- Milk\r\n\r\n• Bread \n[ ] Eggs\n");
  await expect(plan.toast).toHaveText("Added 3 items");
  await plan.goTo("Inbox");
  await eventually(async () => assert.deepEqual(await plan.titles(), ["Milk", "Bread", "Eggs"]));
  await plan.page.keyboard.press("Control+z");
  await expect(plan.items).toHaveCount(0);
});

test("a new list has the cursor where its first item goes, and is scrolled to", async () => {
  const plan = await openPlan(await here.device({ viewport: { width: 1200, height: 500 } }));
  const { page } = plan;
  for (let number = 1; number <= 12; number += 1) await plan.addList(`List ${number}`);
  await eventually(async () => assert.equal(await focusedId(page), "quick-add"));
  await page.keyboard.type("Milk");
  await page.keyboard.press("Enter");
  await expect(plan.item("Milk")).toBeVisible();
  const link = page.getByTestId("lists").getByRole("link", { name: "List 12" });
  await eventually(async () => assert.ok(await isWithin(link, page.getByRole("navigation"))));
});

test("other writings: from the right, and found whatever their case and marks", async () => {
  const plan = await openPlan(await here.device());
  for (const title of ["ÜBUNG", "МОЛОКО", "Café", "לקנות חלב"]) await plan.add(title);
  const direction = (locator: Locator): Promise<string> =>
    locator.evaluate((element) => getComputedStyle(element).direction);
  assert.equal(await direction(plan.item("חלב").locator(".row-title")), "rtl");
  assert.equal(await direction(plan.item("Café").locator(".row-title")), "ltr");
  for (const [text, title] of [
    ["übung", "ÜBUNG"],
    ["молоко", "МОЛОКО"],
    ["cafe", "Café"],
  ] as const) {
    await plan.page.getByRole("searchbox").fill(text);
    await eventually(async () => assert.deepEqual(await plan.titles(), [title]));
  }
});

test("a broken address opens the first screen, and links in a note are followed", async () => {
  const plan = await openPlan(await here.device(), "/#/list/%E0%A4%A");
  const { page } = plan;
  await expect(page.getByTestId("view-title")).toHaveText("Today");
  await plan.add("Read");
  await plan.openItem("Read");
  await page.getByLabel("Note").fill("the article (https://example.org/a?b=1).");
  await page.getByLabel("Note").blur();
  const link = page.getByTestId("note-links").getByRole("link", { name: "example.org/a?b=1" });
  assert.equal(await link.getAttribute("href"), "https://example.org/a?b=1");
  assert.equal(await link.getAttribute("rel"), "noopener noreferrer");
});

test("on paper: the whole list, and nothing but the list", async () => {
  const plan = await openPlan(await here.device());
  const { page } = plan;
  const lines = Array.from({ length: 200 }, (_, index) => `Line ${index}`);
  await paste(page.locator("#quick-add"), lines.join("\n"));
  await expect(plan.toast).toHaveText("Added 200 items");
  assert.ok((await plan.items.count()) < 100, "only what is on the screen exists");
  await page.evaluate(() => {
    window.print = () => {
      dispatchEvent(new Event("beforeprint"));
      const drawn = document.querySelectorAll("[data-testid=item]").length;
      document.title = `${String(drawn)} on paper`;
      dispatchEvent(new Event("afterprint"));
    };
  });
  await plan.items.first().getByRole("button").focus();
  await page.keyboard.press("Control+p");
  await eventually(async () => assert.equal(await page.title(), "200 on paper"));
  await eventually(async () => assert.ok((await plan.items.count()) < 100));
  await page.emulateMedia({ media: "print" });
  await expect(plan.items).toBeVisible();
  for (const hidden of [".sidebar", ".quick-add", ".toasts"]) {
    assert.equal(await page.locator(hidden).isVisible(), false, hidden);
  }
});

function focusedId(page: Page): Promise<string> {
  return page.evaluate(() => document.activeElement?.id ?? "");
}

function focusedClass(page: Page): Promise<string> {
  return page.evaluate(() => document.activeElement?.className ?? "");
}

/** Sends a key that an input method has taken. */
function compose(on: Locator, key: string): Promise<"prevented" | "let be"> {
  return on.evaluate((element, pressed) => {
    const options = { key: pressed, keyCode: 229, bubbles: true, cancelable: true };
    const isLetBe = element.dispatchEvent(new KeyboardEvent("keydown", options));
    return isLetBe ? "let be" : "prevented";
  }, key);
}

function paste(into: Locator, text: string): Promise<void> {
  return into.evaluate((element, pasted) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", pasted);
    const options = { clipboardData, bubbles: true, cancelable: true };
    element.dispatchEvent(new ClipboardEvent("paste", options));
  }, text);
}

async function isWithin(inner: Locator, outer: Locator): Promise<boolean> {
  const [one, other] = [await inner.boundingBox(), await outer.boundingBox()];
  if (one === null || other === null) return false;
  return one.y >= other.y && one.y + one.height <= other.y + other.height;
}
