// A budget app made of `@actual-app/api`, driven by lines of JSON: `client.js PACKAGES`.
// `client.py` is the same on `actualpy`. What is right is for the test to say that asks.
import { createRequire } from 'node:module';
import { serve } from './lines.js';

const api = createRequire(`${process.argv[2]}/`)('@actual-app/api');

let engine; // what `init` gives: `send` runs any request that the web app's pages can make

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
  // Logs in; as the first one, it sets the password. With a token it goes on with that.
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
  // The copy in the own folder, or else a download.
  async open({ group, key }) {
    await api.downloadBudget(group, { password: key });
    return here();
  },
  // What the app does when a person lets go of the own copy.
  async again({ key }) {
    const { file } = await here();
    await send('close-budget');
    if (key) await send('key-test', { cloudFileId: file, password: key });
    await send('download-budget', { cloudFileId: file });
    return here();
  },
  // "Import file": an archive that an app, or `warren actual-budget export`, has written.
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
    // The first may have joined one that began before the last change.
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
    // Its answer is the same when the server refused.
    await send('delete-budget', { cloudFileId: file });
  },
  'change-password': ({ password }) => send('subscribe-change-password', { password }),
};

await serve(requests);
process.exit();
