import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ConfigurationError, InvariantError } from '../../base/assert.ts';
import { VfioUserClient } from './client/client.ts';
import { REGION_BAR0 } from './device.ts';
import { nativeUnavailableReason } from './native/library.ts';
import { connectTo } from './native/listener.ts';
import { closeDescriptor } from './native/poll.ts';
import { Reactor } from './reactor.ts';
import { openDescriptorCount } from './testing/bench.ts';
import { TestDevice } from './testing/device.ts';
import { VfioUserServer } from './vfio-user/vfio-user-server.ts';

const unavailable = nativeUnavailableReason();
if (unavailable !== undefined) console.warn(`skipped: ${unavailable}`);

describe.skipIf(unavailable !== undefined)('a reactor', () => {
  let before = 0;
  let folder = '';
  let devices: TestDevice[];
  let servers: VfioUserServer[];
  let reactor: Reactor;
  const clients: VfioUserClient[] = [];

  beforeEach(() => {
    before = openDescriptorCount();
    folder = mkdtempSync(join(tmpdir(), 'hca-reactor-'));
    devices = [new TestDevice(), new TestDevice()];
    servers = devices.map((device, at) => new VfioUserServer({ path: join(folder, `slot${at}`), device }));
    reactor = new Reactor(servers);
  });

  afterEach(() => {
    for (const client of clients.splice(0)) client.close();
    reactor.close();
    rmSync(folder, { recursive: true });
    expect(openDescriptorCount()).toBe(before);
  });

  const connect = (at: number): VfioUserClient => {
    const client = new VfioUserClient(servers[at]!.path, () => reactor.poll(0));
    clients.push(client);
    client.handshake();
    return client;
  };
  const settle = (): void => {
    while (reactor.poll(0));
  };

  it('serves several guests in turn', () => {
    const left = connect(0);
    const right = connect(1);
    for (let value = 0; value < 300; value++) {
      left.post(REGION_BAR0, 0, Uint8Array.of(value & 0xff, 1));
      right.post(REGION_BAR0, 0, Uint8Array.of(value & 0xff, 2));
    }
    expect(left.read(REGION_BAR0, 0, 2)).toEqual(Uint8Array.of(43, 1));
    expect(right.read(REGION_BAR0, 0, 2)).toEqual(Uint8Array.of(43, 2));
  });

  it('limits one guest’s work in one poll, and returns without waiting', () => {
    const client = connect(0);
    settle();
    for (let value = 0; value < 200; value++) client.post(REGION_BAR0, 0, Uint8Array.of(value));
    const counts: number[] = [];
    for (let seen = 0; seen < 200; ) {
      reactor.poll(Infinity);
      counts.push(devices[0]!.writeCount - seen);
      seen = devices[0]!.writeCount;
    }
    expect(counts).toEqual([64, 64, 64, 8]);
  });

  it('waits as long as requested when nothing happens, fractions included', () => {
    settle();
    for (const timeoutMs of [0, 0.3, 20, 1001]) {
      const startMs = performance.now();
      expect(reactor.poll(timeoutMs)).toBe(false);
      expect(performance.now() - startMs).toBeGreaterThanOrEqual(timeoutMs);
    }
  });

  it('is woken: before it waits, and by another thread while it does', async () => {
    reactor.wake();
    reactor.wake();
    expect(reactor.poll(Infinity)).toBe(true);
    expect(reactor.poll(0)).toBe(false);
    const source = `const { workerData } = require('node:worker_threads');
      setTimeout(() => require('node:fs').writeSync(workerData, Buffer.from([1, 0, 0, 0, 0, 0, 0, 0])), 30);`;
    const worker = new Worker(source, { eval: true, workerData: reactor.wakeDescriptor });
    expect(reactor.poll(Infinity)).toBe(true);
    await once(worker, 'exit');
  });

  it('lets a signal end its wait, so that its handler can run', async () => {
    let signals = 0;
    const count = (): void => {
      signals++;
    };
    process.on('SIGUSR2', count);
    const killer = spawn('sh', ['-c', `while sleep 0.1; do kill -USR2 ${process.pid}; done`], {
      stdio: 'ignore',
    });
    await once(killer, 'spawn');
    const startMs = performance.now();
    while (signals === 0 && performance.now() - startMs < 20_000) {
      reactor.poll(10_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    killer.kill();
    await once(killer, 'exit');
    await new Promise((resolve) => setImmediate(resolve));
    process.off('SIGUSR2', count);
    expect(signals).toBeGreaterThan(0);
  });

  it('refuses to be polled by a device, and continues afterwards', () => {
    const client = connect(0);
    devices[0]!.reset = () => {
      reactor.poll(0);
    };
    client.command(13, new Uint8Array(0), { noReply: true });
    expect(() => settle()).toThrow(InvariantError);
    expect(client.read(REGION_BAR0, 0, 1)).toEqual(new Uint8Array(1));
  });

  describe('on a socket path', () => {
    const serverAt = (path: string): VfioUserServer => new VfioUserServer({ path, device: new TestDevice() });

    it('that is in use fails', () => {
      expect(() => serverAt(servers[0]!.path)).toThrow(ConfigurationError);
      expect(() => serverAt(servers[0]!.path)).toThrow(/nobody listens/);
      settle();
      expect(connect(0).read(REGION_BAR0, 0, 1)).toEqual(new Uint8Array(1));
    });

    it('that a dead server left over listens again', async () => {
      const path = join(folder, 'stale');
      const source = `require('node:net').createServer().listen(${JSON.stringify(path)}, () => process.kill(process.pid, 'SIGKILL'))`;
      await once(spawn(process.execPath, ['-e', source]), 'exit');
      expect(existsSync(path)).toBe(true);
      const server = serverAt(path);
      const descriptor = connectTo(path);
      expect(descriptor).toBeGreaterThanOrEqual(0);
      closeDescriptor(descriptor);
      server.close();
      expect(existsSync(path)).toBe(false);
    });

    it('that another server has taken over meanwhile is not touched', () => {
      const path = join(folder, 'mine');
      const server = serverAt(path);
      rmSync(path);
      const other = serverAt(path);
      server.close();
      expect(existsSync(path)).toBe(true);
      other.close();
      expect(existsSync(path)).toBe(false);
    });

    it('that is something else, too long, or in no folder is rejected and not touched', () => {
      const file = join(folder, 'file');
      writeFileSync(file, 'precious');
      symlinkSync(file, join(folder, 'link'));
      for (const path of [
        file,
        join(folder, 'link'),
        folder,
        join(folder, 'none/x'),
        `/tmp/${'x'.repeat(103)}`,
        '',
        'a\0b',
      ]) {
        expect(() => serverAt(path)).toThrow(ConfigurationError);
      }
      expect(existsSync(file)).toBe(true);
    });

    it('of the greatest length works', () => {
      const path = `${folder}/${'x'.repeat(106 - folder.length)}`;
      expect(path).toHaveLength(107);
      serverAt(path).close();
    });
  });
});
