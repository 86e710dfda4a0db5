/** The server of the built site: serves paths of its folder and no others, for any request. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type SiteServer, serveSite } from './serve-site.ts';

const parent = mkdtempSync(join(tmpdir(), 'hca-serve-'));
const folder = join(parent, 'site');
let server: SiteServer;
beforeAll(async () => {
  mkdirSync(join(folder, 'lab-app'), { recursive: true });
  for (const path of ['index.html', 'lab-app/index.html', 'a b.txt']) writeFileSync(join(folder, path), path);
  writeFileSync(join(parent, 'outside.txt'), 'outside');
  server = await serveSite(folder, 0);
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  rmSync(parent, { recursive: true });
});

interface Answer {
  readonly status: number | undefined;
  readonly text: string;
  readonly isIsolated: boolean;
}

/** Sends a path unchanged: `fetch` would normalise it first. */
const asked = (path: string): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const sent = request(server.url, { path }, (response) => {
      let text = '';
      response.on('data', (piece) => {
        text += String(piece);
      });
      const isIsolated = response.headers['cross-origin-opener-policy'] === 'same-origin';
      response.on('end', () => resolve({ status: response.statusCode, text, isIsolated }));
    });
    sent.on('error', reject).end();
  });

it('serves files, folders by their index, and the lab with its own headers', async () => {
  expect(await asked('/')).toEqual({ status: 200, text: 'index.html', isIsolated: false });
  expect(await asked('/a%20b.txt?x#y')).toEqual({ status: 200, text: 'a b.txt', isIsolated: false });
  expect(await asked('/lab-app/')).toEqual({ status: 200, text: 'lab-app/index.html', isIsolated: true });
});

it.each([
  '/nowhere.html',
  '/lab-app',
  '/../outside.txt',
  '/%2e%2e/outside.txt',
  '/..%2foutside.txt',
  '/%',
  '//',
])('answers %s with 404, and continues to serve', async (path) => {
  expect(await asked(path)).toMatchObject({ status: 404 });
  expect(await asked('/')).toMatchObject({ status: 200 });
});
