/** A headless Chromium, and a page shown in it. The page reports its result by a POST to its own server: nothing else is required of the browser. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type Browser, launch } from 'puppeteer-core';
import { environmentOf } from './tree.ts';

/** No network except loopback, no user profile, no sandbox (which root may lack). */
const switches = [
  ...['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
  ...['--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
];

const executableOf = (tree: string): string => join(tree, 'usr/lib/chromium/chromium-headless-shell');

/** The browser, to be driven: closed, and its profile removed, at the end of its scope. */
export async function drivenBrowser(tree: string): Promise<AsyncDisposable & { readonly browser: Browser }> {
  const profile = mkdtempSync(join(tmpdir(), 'hca-chromium-'));
  const browser = await launch({
    executablePath: executableOf(tree),
    args: [...switches],
    userDataDir: profile,
    env: environmentOf(tree, profile),
  });
  return {
    browser,
    async [Symbol.asyncDispose]() {
      await browser.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

/** Condition for shared memory in a page: it contains nothing of another origin. */
const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

/** Content of each path: its type and its text. */
export type Files = Readonly<Record<string, readonly [type: string, text: string]>>;

/**
 * Shows the page `/` of `files`, and waits for its POST.
 * @throws Error with Chromium's complaint if it ends before that, or takes longer than `limitMs`
 */
export async function showPage(tree: string, files: Files, limitMs: number): Promise<string> {
  const sent = Promise.withResolvers<string>();
  const server = createServer((request: IncomingMessage, response) => {
    if (request.method === 'POST') text(request).then(sent.resolve, sent.reject);
    const [type, body] = files[request.url!] ?? ['text/plain', ''];
    response.writeHead(request.url! in files ? 200 : 404, { 'Content-Type': type, ...isolation }).end(body);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const profile = mkdtempSync(join(tmpdir(), 'hca-chromium-'));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const browser = spawn(
    executableOf(tree),
    [...switches, `--user-data-dir=${profile}`, '--remote-debugging-port=0', address],
    { env: environmentOf(tree, profile), stdio: ['ignore', 'ignore', 'pipe'] },
  );
  const ended = once(browser, 'close');
  let complaints = '';
  browser.stderr.setEncoding('utf8').on('data', (piece: string) => {
    complaints += piece;
  });
  const fail = (what: string): void => sent.reject(new Error(`Chromium ${what}: ${complaints}`));
  browser.on('error', (error) => fail(error.message)).on('close', (code) => fail(`ended with ${code}`));
  const limit = setTimeout(() => fail(`sent nothing in ${limitMs} ms`), limitMs);
  try {
    return await sent.promise;
  } finally {
    clearTimeout(limit);
    browser.kill('SIGKILL');
    await ended;
    server.closeAllConnections();
    server.close();
    rmSync(profile, { recursive: true, force: true });
  }
}
