// The published web app in a browser with a profile of its own, driven by lines of JSON as
// `client.js` is: `web.js PACKAGES`. It does what a person does: it looks for what is on the page,
// and clicks on it.
import { createRequire } from 'node:module';
import { findBrowser } from './browser.js';
import { serve } from './lines.js';

const { chromium } = createRequire(`${process.argv[2]}/`)('playwright-core');
/** For what has to appear on a machine that is busy. */
const APPEAR_MS_MAX = 60_000;
/** Until the next click on the button that syncs. */
const SYNC_MS_MAX = 2_000;

let context;
let page;

const button = (name) => page.getByRole('button', { name, exact: true });
const row = (notes) =>
  page.getByTestId('transaction-table').getByTestId('row').filter({ hasText: notes });
// Its text is in an input from the click on.
const fill = async (row, name, text) => {
  await row.getByTestId(name).click();
  const input = page.getByTestId(name).locator('input');
  await input.selectText();
  await input.pressSequentially(text);
  await page.keyboard.press('Tab');
  // The page shows what was typed at once, and takes it over when its worker has applied the rules:
  // the worker answers in order, and so this question after that one.
  await page.evaluate(() => globalThis.$send('rules-get'));
};

serve({
  // Logs in; as the first one, it sets the password.
  async 'sign-in'({ address, password, dir }) {
    // Another address for each profile: the published server allows 500 requests a minute to each.
    const own = `127.1.${(process.pid >> 8) & 255}.${process.pid & 255}`;
    const extraHTTPHeaders = { 'X-Forwarded-For': own };
    const options = { executablePath: findBrowser(chromium), extraHTTPHeaders, locale: 'en-US' };
    context = await chromium.launchPersistentContext(dir, options);
    page = context.pages()[0];
    page.setDefaultTimeout(APPEAR_MS_MAX);
    page.on('console', (message) => console.error(message.text()));
    page.on('pageerror', (error) => console.error(error));
    await page.goto(address);
    await page.getByPlaceholder('Password', { exact: true }).waitFor();
    const again = page.getByPlaceholder('Confirm password');
    const first = await again.isVisible();
    if (first) {
      await page.getByPlaceholder('Password', { exact: true }).fill(password);
      await again.fill(password);
      await button('OK').click();
      await again.waitFor({ state: 'hidden' });
    }
    await page.getByPlaceholder('Password', { exact: true }).fill(password);
    await button('Sign in').click();
    await button('Sign in').waitFor({ state: 'hidden' });
    return { first };
  },
  isolated: () => page.evaluate(() => crossOriginIsolated),
  // The first budget of all.
  async create() {
    await button('Start budgeting').click();
    await page.getByTestId('budget-name').waitFor();
  },
  async open({ name }) {
    await page.getByRole('row', { name }).click();
    await page.getByTestId('budget-name').waitFor();
  },
  async account({ name }) {
    await button('Add account').click();
    await button('Create a local account').click();
    await page.getByLabel('Name:').fill(name);
    await button('Create').click();
    await page.getByTestId('account-name').waitFor();
  },
  'go-to': ({ account }) => page.getByRole('link', { name: account }).click(),
  async add({ notes, payment }) {
    await button('Add New').click();
    const entered = page.getByTestId('new-transaction');
    await fill(entered, 'notes', notes);
    await fill(entered, 'debit', payment);
    const typed = entered.filter({ hasText: notes }).filter({ hasText: payment });
    await typed.waitFor();
    await entered.getByTestId('add-button').click();
    await entered.getByTestId('cancel-button').click();
    await row(notes).waitFor();
  },
  async edit({ notes, set }) {
    await fill(row(notes), 'notes', set);
    await row(set).waitFor();
  },
  // Syncs until the transaction is there.
  async see({ notes }) {
    for (const end = Date.now() + APPEAR_MS_MAX; ; ) {
      await button('Server Sync').click();
      try {
        await row(notes).waitFor({ timeout: SYNC_MS_MAX });
        return;
      } catch (error) {
        if (Date.now() > end) throw error;
      }
    }
  },
  async state() {
    const read = (rows) =>
      rows.map((row) =>
        ['notes', 'debit'].map((cell) => row.querySelector(`[data-testid=${cell}]`).innerText),
      );
    const rows = await page.getByTestId('transaction-table').getByTestId('row').evaluateAll(read);
    return { balance: await page.getByTestId('account-balance').innerText(), rows };
  },
}).finally(() => context?.close());
