// Drives the published web app, in a browser with its own profile, by lines of JSON like
// `client.js`: `web.js PACKAGES`. Like a person, it looks for elements of the page and clicks on
// them.
import { createRequire } from 'node:module';
import { findBrowser } from './browser.js';
import { serve } from './lines.js';

const { chromium } = createRequire(`${process.argv[2]}/`)('playwright-core');
/** The time within which an element must appear, also on a busy machine. */
const APPEAR_MS_MAX = 60_000;
/** The time after which a step that had no effect is repeated. */
const RETRY_MS = 2_000;

let context;
let page;

const button = (name) => page.getByRole('button', { name, exact: true });
const row = (notes) =>
  page.getByTestId('transaction-table').getByTestId('row').filter({ hasText: notes });
// Fills in a cell of a row. A click on the cell turns its text into an input.
const fill = async (row, name, text) => {
  await row.getByTestId(name).click();
  const input = page.getByTestId(name).locator('input');
  await input.selectText();
  await input.pressSequentially(text);
  await page.keyboard.press('Tab');
  // The page shows the typed text at once, but uses it only after its worker has applied the rules.
  // The worker answers in order, so it answers this request after it has applied the rules.
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
  // Logs in, and sets the password first if none is set yet.
  async 'sign-in'({ address, password, dir }) {
    // Each profile has its own address: the published server allows 500 requests a minute per
    // address.
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
  // Creates the first budget.
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
    // When a budget has loaded, the app closes the dialogs that were opened in the meantime.
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
  // Syncs until the transaction appears.
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
