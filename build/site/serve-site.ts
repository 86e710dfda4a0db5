/** Serves the built site on loopback, and the lab in it with the headers that a browser requires for shared memory. */
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join, normalize } from 'node:path';
import { labHeaders } from '../lab-headers.ts';
import { labAddress } from './page-links.ts';

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json',
  '.txt': 'text/plain; charset=utf-8',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
};

export interface SiteServer extends AsyncDisposable {
  /** Address of the front page, with a slash at its end. */
  readonly url: string;
}

/**
 * @param folder the built site
 * @param port on 127.0.0.1; 0 selects any free one
 */
export async function serveSite(folder: string, port: number): Promise<SiteServer> {
  const server = createServer((request, response) => answer(folder, request, response));
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

/** Answers with a file of the folder: for a path that ends in a slash, with its `index.html`. */
function answer(folder: string, { url = '/' }: IncomingMessage, response: ServerResponse): void {
  const path = pathIn(url);
  const file = join(folder, path.endsWith('/') ? `${path}index.html` : path);
  const type = types[extname(file)];
  if (type === undefined || !existsSync(file)) {
    response.writeHead(404, { 'Content-Type': 'text/plain' }).end('Not found\n');
    return;
  }
  const headers = path.startsWith(labAddress) ? labHeaders : {};
  response.writeHead(200, { 'Content-Type': type, ...headers }).end(readFileSync(file));
}

/** The path of a request, which may be any text; empty for a request without one. */
function pathIn(url: string): string {
  try {
    return normalize(decodeURIComponent(new URL(url, 'http://127.0.0.1').pathname));
  } catch {
    return '';
  }
}
