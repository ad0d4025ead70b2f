// The published web app in a browser with a profile of its own, driven by lines of JSON as
// `client.js` is: `web.js PACKAGES`. It does what a person does: it looks for what is on the page,
// and clicks on it.
import { createRequire } from 'node:module';
import { findBrowser } from './browser.js';
import { serve } from './lines.js';

const { chromium } = createRequire(`${process.argv[2]}/`)('playwright-core');
/** For what has to appear on a machine that is busy. */
const APPEAR_MS_MAX = 60_000;
/** Until something that has had no effect is done again. */
const RETRY_MS = 2_000;

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

// Repeats the step until it succeeds.
async function repeat(step) {
  for (const end = Date.now() + APPEAR_MS_MAX; ; ) {
    try {
      await step();
      return;
    } catch (error) {
      if (Date.now() > end) throw error;
    }
  }
}

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
    const [local, field] = [button('Create a local account'), page.getByLabel('Name:')];
    const soon = { timeout: RETRY_MS };
    // A budget that has just been loaded closes the dialogs that were opened meanwhile.
    await repeat(async () => {
      if (!(await field.isVisible())) {
        if (!(await local.isVisible())) await button('Add account').click(soon);
        await local.click(soon);
      }
      await field.fill(name, soon);
      await button('Create').click(soon);
    });
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
  see: ({ notes }) =>
    repeat(async () => {
      await button('Server Sync').click();
      await row(notes).waitFor({ timeout: RETRY_MS });
    }),
  async state() {
    const read = (rows) =>
      rows.map((row) =>
        ['notes', 'debit'].map((cell) => row.querySelector(`[data-testid=${cell}]`).innerText),
      );
    const rows = await page.getByTestId('transaction-table').getByTestId('row').evaluateAll(read);
    return { balance: await page.getByTestId('account-balance').innerText(), rows };
  },
}).finally(() => context?.close());
