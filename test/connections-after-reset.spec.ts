/**
 * Connections of rdma_cm when a device is reset under them, on InfiniBand and RoCE: the peer notices by the next REQ or REP,
 * and a listener at any address outlives its device. Messages are read from captures of both networks, by the offsets of IBTA
 * volume 1, 12.6.
 */
import { describe, expect, it, vi } from 'vitest';
import { packetsIn, readCapture } from '../analyser/capture/index.ts';
import type { MachineOptions } from '../machine/machine.ts';
import { expectBalanced } from './expectations.ts';
import { eachPartition, programOf, runPrograms, smallMachine } from './machines.ts';
import type { ResetArgs } from './programs/connecting.ts';

vi.setConfig({ testTimeout: 120_000 });

const networks = {
  InfiniBand: {},
  'RoCE v1': { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v1' },
  'RoCE v2': { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' },
} as const;
type Network = keyof typeof networks;

interface Message {
  readonly from: string;
  readonly name: string;
  readonly localId: number;
  readonly remoteId: number;
  readonly mad: DataView;
}

const names = new Map([
  [16, 'REQ'],
  [17, 'MRA'],
  [18, 'REJ'],
  [19, 'REP'],
  [20, 'RTU'],
  [21, 'DREQ'],
  [22, 'DREP'],
]);

/** The messages of class 7 in a capture. Their IDs are the first words of each (12.6). */
function messagesIn(file: Uint8Array): Message[] {
  return packetsIn(readCapture(file)).packets.flatMap(({ from, packet }) => {
    const mad = new DataView(packet.payload.buffer, packet.payload.byteOffset, packet.payload.byteLength);
    if (packet.bth.destinationQp !== 1 || mad.getUint8(1) !== 7) return [];
    const name = names.get(mad.getUint16(16))!;
    return [{ from, name, localId: mad.getUint32(24), remoteId: mad.getUint32(28), mad }];
  });
}

async function connections(network: Network, args: ResetArgs, options: MachineOptions = {}) {
  const analysis = { capture: { ends: [{ node: 1 }], sizeBytes: 2 ** 21 } };
  await using machine = await smallMachine({ ...options, set: networks[network], analysis });
  await machine.load(programOf('connecting', 'reconnects', 0, { args: { ...args } }));
  await machine.load(programOf('connecting', 'staysListening', 1, { args: { ...args } }));
  await machine.run();
  const [client, server] = (await machine.results()) as [string[][], (string | number)[]];
  const report = await machine.report();
  expectBalanced(report);
  return { client, server, messages: messagesIn(await machine.capture()), seconds: report.elapsedPs / 1e12 };
}

/**
 * REQs that each round needs: after a reset a device numbers its QPs from the first again, and the server has old connections
 * with these numbers until a REQ has shown each to be stale.
 */
function attemptsOf(rounds: number): number[] {
  const connected = new Set<number>();
  return Array.from({ length: rounds }, () => {
    let qp = 0;
    while (connected.delete(qp)) qp++;
    connected.add(qp);
    return qp + 1;
  });
}

describe.each(Object.keys(networks) as Network[])('on %s', (network) => {
  it('IBTA 12.9.8.3.1: a client whose device was reset is rejected with reason 10 for each of its QPs that has a connection', async () => {
    const rounds = 4;
    const { client, server, messages, seconds } = await connections(network, { rounds, resets: 0 });
    const expected = attemptsOf(rounds);
    expect(client.map((told) => told.length)).toEqual(expected.map((count) => count + 1));
    for (const told of client)
      expect(told).toEqual([...Array(told.length - 2).fill('REJECTED 10'), 'ESTABLISHED 0', 'SUCCESS']);
    expect(server.filter((told) => typeof told === 'number')).toEqual([0, 1, 2, 3]);
    const [, asker] = [messages[1]!.from, messages[0]!.from];
    const conversation = messages.map(({ name, from }) => (from === asker ? `${name} >` : `< ${name}`));
    const connect = ['REQ >', '< REP', 'RTU >'];
    const refusal = ['REQ >', '< REJ', '< DREQ', 'DREP >'];
    const whole = expected.flatMap((count) => [
      ...Array(count - 1)
        .fill(refusal)
        .flat(),
      ...connect,
    ]);
    expect(conversation.slice(0, whole.length)).toEqual(whole);
    // The REJ: of a REQ (byte 8, upper two bits 0), reason 10 (bytes 10 and 11), from no ID to the requester's ID.
    const rejects = messages.filter(({ name }) => name === 'REJ');
    const requests = messages.filter(({ name }) => name === 'REQ');
    const refused = messages.filter((_, at) => messages[at + 1]?.name === 'REJ');
    expect(rejects).toHaveLength(expected.reduce((sum, count) => sum + count - 1, 0));
    rejects.forEach(({ mad, localId, remoteId }, at) => {
      expect([mad.getUint8(24 + 8) >> 6, mad.getUint16(24 + 10)]).toEqual([0, 10]);
      expect([localId, remoteId]).toEqual([0, refused[at]!.localId]);
    });
    // IDs of a host are not reused after its device's reset.
    expect(new Set(requests.map(({ localId }) => localId)).size).toBe(requests.length);
    // The reset itself takes about a second; a dropped REQ would cost 4.3 s, and 68.7 s after an MRA.
    expect(seconds).toBeLessThan(4 * rounds);
  });

  it('cma.c, cma_add_one: a listener at any address accepts requests again after its device was reset', async () => {
    const rounds = 3;
    const { client, server } = await connections(network, { rounds, resets: 1 });
    for (const told of client) expect(told.slice(-2)).toEqual(['ESTABLISHED 0', 'SUCCESS']);
    expect(server.filter((told) => typeof told === 'number')).toEqual([0, 1, 2]);
    // Each connection of a reset device gets its event; the listener gets none.
    const established = server.indexOf('DEVICE_REMOVAL 0');
    expect(server.slice(established, established + 2)).toEqual(['DEVICE_REMOVAL 0', 'CONNECT_REQUEST 0']);
  });
});

it('cma.c, cma_process_remove: a listener at an address of the device gets its event, and listens no more', async () => {
  const { results } = await runPrograms([
    programOf('connecting', 'asksTwice', 0),
    programOf('connecting', 'listensAtAnAddress', 1),
  ]);
  expect(results[0]).toEqual(['RDMA_CM_EVENT_REJECTED', 8]);
  expect(results[1]).toEqual(['RDMA_CM_EVENT_DEVICE_REMOVAL', true, 'RDMA_CM_EVENT_CONNECT_REQUEST', true]);
});

it('ucma.c, ucma_removal_event_handler: an unfetched request is dropped, and arrives again by its repetition', async () => {
  const { results } = await runPrograms([
    programOf('connecting', 'asksOnce', 0),
    programOf('connecting', 'fetchesLate', 1),
  ]);
  // One request, after 4.096 µs × (2 × 2^18 + 2^20), 6.4 s, in which a REQ is unanswered; no event of the dropped one.
  expect(results[1]).toEqual(['RDMA_CM_EVENT_CONNECT_REQUEST', 64, true]);
  expect(results[0]).toEqual(['RDMA_CM_EVENT_REJECTED', 28]);
});

it.each(eachPartition)('is the same in partition %s', async (partition) => {
  const single = await connections('InfiniBand', { rounds: 2, resets: 0 }, { partition: 'single' });
  const cut = await connections('InfiniBand', { rounds: 2, resets: 0 }, { partition });
  expect([cut.client, cut.server, cut.seconds]).toEqual([single.client, single.server, single.seconds]);
});
