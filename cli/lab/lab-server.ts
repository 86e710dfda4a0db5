/**
 * Serves the lab on loopback. Each file is sent with the headers of the lab's `_headers`, including those that allow a
 * page to use shared memory. Only files of the folder are served, and only for GET and HEAD.
 */
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { extname, join } from 'node:path';
import { ConfigurationError, codeOf } from '../../base/index.ts';

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
 * @throws ConfigurationError if the port is not available
 */
export async function serveLab(folder: string, port: number): Promise<LabServer> {
  const headers = headersIn(readFileSync(join(folder, '_headers'), 'utf8'));
  const files = new Map<string, Buffer>();
  for (const name of readdirSync(folder))
    if (extname(name) in types) files.set(`/${name}`, readFileSync(join(folder, name)));
  // An import would make its exports' getters load fetch and WebSocket at each start of `hca`.
  const { createServer } = process.getBuiltinModule('node:http');
  const server = createServer((request, response) => answer(files, headers, request, response));
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
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
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
      'Content-Type': types[extname(name)]!,
      'Content-Length': body.length,
      'Cache-Control': 'no-cache',
    });
    response.end(method === 'HEAD' ? undefined : body);
  }
}
