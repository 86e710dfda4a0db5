/** A queue of points without a server, or without its packages. */

import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { ConfigurationError } from '../../../base/assert.ts';
import { connected, shownUrl } from './connection.ts';
import { loadQueuePackages, PackageMissingError } from './packages.ts';

describe('the packages of a queue', () => {
  it('that are missing are named with the command that installs them', () => {
    const missing = (name: string): never => {
      throw new Error(`Cannot find module '${name}'\nRequire stack: …`);
    };
    expect(() => loadQueuePackages(missing)).toThrow(PackageMissingError);
    expect(() => loadQueuePackages(missing)).toThrow(
      "a queue of points needs the packages bullmq and ioredis: run `npm install bullmq ioredis` (Cannot find module 'bullmq')",
    );
  });

  it('have the used functions', () => {
    const { Redis, ...bullmq } = loadQueuePackages();
    expect([Redis, ...Object.values(bullmq)].map((each) => typeof each)).toEqual(Array(5).fill('function'));
  });
});

describe('the address of a server', () => {
  it('is shown without its password', () => {
    expect(shownUrl('redis://me:secret@host:6379/2')).toBe('redis://me:…@host:6379/2');
    expect(shownUrl('redis://:%zz@host')).toBe('redis://:…@host');
    expect(shownUrl('rediss://me@host')).toBe('rediss://me@host');
  });

  it.each(['host:6379', 'http://host', 'redis:///x', '', 'redis'])('is refused: %j', (url) => {
    expect(() => shownUrl(url)).toThrow('an address such as redis://127.0.0.1:6379');
  });

  it('without a server fails immediately with one line', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    const address = { url: `redis://:secret@127.0.0.1:${port}`, queue: 'q' };
    const error = await connected(address).catch((each: unknown) => each);
    expect(error).toBeInstanceOf(ConfigurationError);
    expect((error as Error).message).toMatch(/^--redis is "redis:\/\/:…@127.*\(connect ECONNREFUSED/);
  });
});
