/**
 * The iperf3 server with a client that behaves like iperf 3.12, on two simulated hosts; with the stock client:
 * test/guest/ethernet-peer.spec.ts.
 */
import { describe, expect, it, vi } from 'vitest';
import { Machine } from '../../machine/machine.ts';
import type { ProgramContext } from '../../machine/program.ts';
import { serveIperf3 } from './iperf3-server.ts';
import { connectTo, listenAt, type SocketStream, socketsOf } from './socket-stream.ts';

vi.setConfig({ testTimeout: 120_000 });

const port = 5201;
const cookie = new TextEncoder().encode(`${'abcdefghijklmnop'.repeat(3).slice(0, 36)}\0`);
const json = (value: unknown): Uint8Array => {
  const text = new TextEncoder().encode(JSON.stringify(value));
  return Uint8Array.of(0, 0, text.length >>> 8, text.length & 0xff, ...text);
};

async function expectState(control: SocketStream, state: number): Promise<void> {
  expect([...(await control.readAll(1))]).toEqual([state]);
}

/**
 * A client that moves this many bytes over each stream.
 * @returns the results of the server
 */
async function test(
  program: ProgramContext,
  parameters: { readonly parallel: number; readonly reverse?: boolean },
  bytes: number,
  openCookie = cookie,
  address: number | string = 0x0a00_0002,
): Promise<unknown> {
  const control = await connectTo(program, address, port);
  await control.write(cookie);
  await expectState(control, 9);
  await control.write(
    json({ tcp: true, omit: 0, time: 0, num: bytes, client_version: '3.12', ...parameters }),
  );
  await expectState(control, 10);
  const streams: SocketStream[] = [];
  for (let at = 0; at < parameters.parallel; at++) {
    streams.push(await connectTo(program, address, port));
    await streams[at]!.write(openCookie);
  }
  await expectState(control, 1);
  await expectState(control, 2);
  for (const stream of streams)
    if (parameters.reverse === true) await stream.readAll(bytes);
    else await stream.write(new Uint8Array(bytes));
  // Bytes in flight also count.
  await program.cpu.sleep(1e9);
  await control.write(Uint8Array.of(4));
  // A receiver reads whole blocks, to the end of the streams.
  if (parameters.reverse === true) for (const stream of streams) while ((await stream.read()).length > 0);
  await expectState(control, 13);
  await control.write(
    json({ cpu_util_total: 1, streams: streams.map((_, at) => ({ id: [1, 3][at], bytes })) }),
  );
  const length = new DataView((await control.readAll(4)).buffer).getUint32(0);
  const results: unknown = JSON.parse(new TextDecoder().decode(await control.readAll(length)));
  await expectState(control, 14);
  for (const stream of streams) await stream.close();
  await control.write(Uint8Array.of(16));
  await control.close();
  return results;
}

/**
 * Both ends, on two hosts.
 * @returns the outcomes of client and server, and the counters of the client's NIC
 */
async function play(
  client: (program: ProgramContext) => Promise<unknown>,
  set: Readonly<Record<string, number>> = {},
): Promise<readonly [unknown, unknown, Readonly<Record<string, number>>]> {
  await using machine = await Machine.create({
    set: { 'machine.adapter': 'nic', 'host.memory.sizeMib': 64, ...set },
  });
  const came: { client?: unknown; server?: unknown } = {};
  await machine.load({
    node: 0,
    run: async (program) => {
      await program.exchange.take('listening');
      try {
        came.client = await client(program);
      } catch (error) {
        came.client = error;
      }
    },
  });
  await machine.load({
    node: 1,
    run: async (program) => {
      const listening = await listenAt(program, port);
      await program.exchange.put('listening', true);
      try {
        came.server = await serveIperf3(program, listening);
      } catch (error) {
        came.server = error;
      }
      await socketsOf(program).close(program.cpu, listening);
    },
  });
  await machine.run();
  const report = await machine.report();
  expect(report.checks.balanced).toBe(true);
  return [came.client, came.server, report.nodes[0]!.nic!.device];
}

describe('a test of iperf3', () => {
  it('receives the client’s data over two streams, and reports the bytes of each', async () => {
    const [results, result] = await play((program) => test(program, { parallel: 2 }, 300_000));
    expect(result).toEqual({ isReverse: false, streams: 2, bytes: 600_000 });
    expect(results).toMatchObject({
      sender_has_retransmits: -1,
      streams: [
        { id: 1, bytes: 300_000, errors: 0, start_time: 0 },
        { id: 3, bytes: 300_000 },
      ],
    });
  });

  it.each([
    ['IPv6', '2001:db8::2', 0],
    ['link-local addresses', 'fe80::12:34ff:fe00:2%eth0', 0],
    ['a VLAN', 0x0a10_0702, 7],
    ['IPv6 of a VLAN', '2001:db8:0:7::2', 7],
    ['the last VLAN', 0x0a1f_fe02, 4094],
    ['IPv6 of the last VLAN', '2001:db8:0:ffe::2', 4094],
  ])('runs over %s, with and without tags', async (_what, address, vlanId) => {
    const set = { 'net.stack.vlanId': vlanId, 'net.stack.vlanPriority': 7 };
    const client = (program: ProgramContext) => test(program, { parallel: 1 }, 100_000, cookie, address);
    const [, result, device] = await play(client, set);
    expect(result).toEqual({ isReverse: false, streams: 1, bytes: 100_000 });
    expect(device['transmitFrames']).toBeGreaterThan(70);
    expect(device['tagsInserted'] ?? 0).toBe(vlanId === 0 ? 0 : device['transmitFrames']);
  });

  it('sends until the client stops it, and ends its streams', async () => {
    const [results, result] = await play((program) => test(program, { parallel: 1, reverse: true }, 300_000));
    expect(results).toMatchObject({ sender_has_retransmits: 0, streams: [{ id: 1 }] });
    const { isReverse, bytes } = result as { readonly isReverse: boolean; readonly bytes: number };
    expect([isReverse, bytes >= 300_000]).toEqual([true, true]);
  });

  it.each([
    [
      'UDP',
      (program: ProgramContext) => test(program, { parallel: 1, tcp: false } as never, 1),
      /expected TCP in one direction/,
    ],
    [
      'a stream of another client',
      (program: ProgramContext) => test(program, { parallel: 1 }, 1, new Uint8Array(37)),
      /another test/,
    ],
    [
      'a client that goes',
      async (program: ProgramContext) => (await connectTo(program, 0x0a00_0002, port)).close(),
      /ended after 0 of 37/,
    ],
  ])('ends with a reason, for %s', async (_what, client, message) => {
    const [, error] = await play(client);
    expect(String(error)).toMatch(message);
  });
});
