/**
 * Serves the lab on loopback. Each file is sent with the headers of the lab's `_headers`, including those that allow a
 * page to use shared memory. Only files of the folder are served, and only for GET and HEAD; and the files of the stock Linux,
 * when its worker requests them: that worker alone may fetch, from here.
 */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { ConfigurationError, codeOf } from '../../base/index.ts';
import { linuxPaths } from '../../guests/linux/booted/index.ts';
import { LinuxFiles } from './linux-files.ts';

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
};

/** Parsed from the lab's `_headers`: lines of name and value under a path, in the format of static hosts. */
function headersIn(text: string): Readonly<Record<string, string>> {
  const lines = [...text.matchAll(/^ {2}([\w-]+): (.+)$/gm)];
  return Object.fromEntries(lines.map(([, name, value]) => [name!, value!]));
}

export interface LabServer extends AsyncDisposable {
  /** Address of the lab, with a slash at its end. */
  readonly url: string;
}

/**
 * @param port on 127.0.0.1; 0 selects any free port
 * @param linux files of the stock Linux: those of the cache, if left out
 * @throws ConfigurationError if the port is not available
 */
export async function serveLab(folder: string, port: number, linux = new LinuxFiles()): Promise<LabServer> {
  const headers = headersIn(readFileSync(join(folder, '_headers'), 'utf8'));
  const files = new Map<string, Buffer>();
  for (const name of readdirSync(folder))
    if (extname(name) in types) files.set(`/${name}`, readFileSync(join(folder, name)));
  // An import would make its exports' getters load fetch and WebSocket at each start of `hca`.
  const { createServer } = process.getBuiltinModule('node:http');
  const server = createServer((request, response) => {
    if (request.url?.startsWith('/linux/') === true)
      void answerOfLinux(linux, headers, request, response).catch((error: unknown) =>
        response.writeHead(500, headers).end(String(error)),
      );
    else answer(files, headers, request, response);
  });
  server.listen(port, '127.0.0.1');
  try {
    await once(server, 'listening');
  } catch (error) {
    throw new ConfigurationError('--port', port, `a free port of this computer (${codeOf(error)})`);
  }
  const { port: actual } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${actual}/`,
    async [Symbol.asyncDispose]() {
      linux[Symbol.dispose]();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

const linuxWorker = '/linux.worker.js';
const policy = 'Content-Security-Policy';

/** The policy of the worker that may fetch from this server. */
const fetching = (headers: Readonly<Record<string, string>>): Record<string, string> => ({
  [policy]: `${headers[policy]}; connect-src 'self'`,
});

async function answerOfLinux(
  linux: LinuxFiles,
  headers: Readonly<Record<string, string>>,
  { method, url, headers: asked }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const send = (type: string, body: Uint8Array | string | undefined): void => {
    if (body === undefined) response.writeHead(404, headers).end();
    else response.writeHead(200, { ...headers, 'Content-Type': type, 'Cache-Control': 'no-store' }).end(body);
  };
  // Pages of other origins must not start processes here.
  if (method === 'POST' && url === linuxPaths.snapshot && asked['sec-fetch-site'] === 'same-origin') {
    linux.make();
    response.writeHead(204, headers).end();
  } else if (method !== 'GET') response.writeHead(405, { ...headers, Allow: 'GET' }).end();
  else if (url === linuxPaths.offer) send('application/json', JSON.stringify(await linux.offer()));
  else if (url === linuxPaths.core) send('application/wasm', linux.core());
  else if (url === linuxPaths.snapshot) send('application/octet-stream', await linux.snapshot());
  else response.writeHead(404, headers).end();
}

function answer(
  files: ReadonlyMap<string, Buffer>,
  headers: Readonly<Record<string, string>>,
  { method, url = '/' }: IncomingMessage,
  response: ServerResponse,
): void {
  const path = url.replace(/[?#].*$/s, '');
  const name = path === '/' ? '/index.html' : path;
  const body = files.get(name);
  if (method !== 'GET' && method !== 'HEAD')
    response.writeHead(405, { ...headers, Allow: 'GET, HEAD' }).end();
  else if (body === undefined) response.writeHead(404, headers).end();
  else {
    response.writeHead(200, {
      ...headers,
      ...(name === linuxWorker ? fetching(headers) : {}),
      'Content-Type': types[extname(name)]!,
      'Content-Length': body.length,
      'Cache-Control': 'no-cache',
    });
    response.end(method === 'HEAD' ? undefined : body);
  }
}
