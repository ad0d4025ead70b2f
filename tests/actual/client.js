// Drives a budget app, made of `@actual-app/api`, by lines of JSON: `client.js PACKAGES`.
// `client.py` does the same with `actualpy`. They only run requests; the tests check the answers.
import { createRequire } from 'node:module';
import { serve } from './lines.js';

const api = createRequire(`${process.argv[2]}/`)('@actual-app/api');

let engine; // the result of `init`: its `send` runs any request that the web app's pages can make

const send = async (name, request) => {
  const answer = await engine.send(name, request);
  if (answer?.error) throw answer.error;
  return answer;
};
const preferences = () => send('load-prefs');
const here = async () => {
  const { cloudFileId: file, groupId: group } = await preferences();
  return { file, group };
};
const accountNamed = async (name) => (await api.getAccounts()).find((one) => one.name === name).id;
const twoDigits = (number) => String(number).padStart(2, '0');
const FIELDS = ['id', 'imported_id', 'date', 'amount', 'notes', 'account.name', 'payee.name'];

const requests = {
  // Logs in, and sets the password first if none is set yet. With a token, uses the token instead.
  async 'sign-in'({ address, password, token, dir }) {
    engine = await api.init({ serverURL: address, dataDir: dir, verbose: true });
    if (token) return void (await send('subscribe-set-token', { token }));
    const { bootstrapped } = await send('subscribe-needs-bootstrap');
    if (!bootstrapped) await send('subscribe-bootstrap', { password });
    await send('subscribe-sign-in', { password });
    return { first: !bootstrapped };
  },
  user: () => send('subscribe-get-user'),

  async create({ name }) {
    await send('create-budget', { budgetName: name });
    return here();
  },
  // Opens the copy in the client's own folder, or else downloads the budget.
  async open({ group, key }) {
    await api.downloadBudget(group, { password: key });
    return here();
  },
  // Downloads the budget again, like the app does when a person gives up the local copy.
  async again({ key }) {
    const { file } = await here();
    await send('close-budget');
    if (key) await send('key-test', { cloudFileId: file, password: key });
    await send('download-budget', { cloudFileId: file });
    return here();
  },
  // Imports an archive that an app or `warren actual-budget export` has written, like the app's
  // "Import file".
  async 'import-file'({ path }) {
    await api.importBudget(path);
    return here();
  },
  close: () => send('close-budget'),
  async files() {
    const files = await send('get-remote-files');
    return files.map(({ fileId, groupId, name, encryptKeyId }) => ({
      file: fileId, group: groupId, name, key: encryptKeyId,
    }));
  },

  account: ({ name }) => api.createAccount({ name }),
  async import({ account, from, count }) {
    const transactions = Array.from({ length: count }, (_, at) => ({
      imported_id: `${account} ${from + at}`,
      date: `2024-${twoDigits(1 + (at % 12))}-${twoDigits(1 + (at % 28))}`,
      amount: from + at + 1,
      payee_name: `Payee ${at % 20}`,
      notes: `note ${from + at}`,
    }));
    const id = await accountNamed(account);
    const { added, errors } = await api.importTransactions(id, transactions);
    if (errors.length) throw errors[0];
    return added.length;
  },
  async edit({ imported, set }) {
    const query = api.q('transactions').filter({ imported_id: imported }).select('id');
    await api.updateTransaction((await api.aqlQuery(query)).data[0].id, set);
  },
  async sync() {
    await api.sync();
    // The first call may have joined a sync that began before the last change.
    await api.sync();
  },
  async state() {
    const { data } = await api.aqlQuery(api.q('transactions').select(FIELDS));
    const balances = {};
    for (const { id, name } of await api.getAccounts()) {
      balances[name] = await api.getAccountBalance(id);
    }
    const { budgetName } = await preferences();
    const transactions = data.map((one) => FIELDS.map((field) => one[field]));
    return { name: budgetName, balances, transactions };
  },

  encrypt: ({ key }) => send('key-make', { password: key }).then(here),
  reset: () => send('sync-reset').then(here),
  rename: ({ name }) => send('save-prefs', { budgetName: name }),
  async delete() {
    const { file } = await here();
    await send('close-budget');
    // The answer does not show whether the server refused.
    await send('delete-budget', { cloudFileId: file });
  },
  'change-password': ({ password }) => send('subscribe-change-password', { password }),
};

await serve(requests);
process.exit();
