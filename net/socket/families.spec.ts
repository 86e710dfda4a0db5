/** Sockets of both IP versions, and of a VLAN: their names, their separation, and their costs. */
import { describe, expect, test } from 'vitest';
import {
  addresses,
  ipv6Addresses,
  linkLocalAddresses,
  ms,
  type NetProgram,
  TestNetwork,
  type TestOptions,
  vlanAddresses,
  vlanId,
  vlanIpv6Addresses,
  vlanPriorities,
} from '../testing/machine.ts';
import { NetError } from './net-error.ts';
import type { SocketAddress } from './socket-address.ts';
import type { SocketCalls } from './socket-calls.ts';

const port = 5000;
type Cpu = Parameters<NetProgram>[0]['cpu'];
type Family = 'AF_INET' | 'AF_INET6';
const familyOf = (address: number | string): Family => (typeof address === 'number' ? 'AF_INET' : 'AF_INET6');

/** The errno of a call, or its result. */
async function errnoOf(call: Promise<unknown>): Promise<string> {
  try {
    return `returned ${JSON.stringify(await call)}`;
  } catch (error) {
    if (!(error instanceof NetError)) throw error;
    return error.code;
  }
}

async function listenAt(cpu: Cpu, calls: SocketCalls, local: SocketAddress): Promise<number> {
  const fd = await calls.socket(cpu, familyOf(local.address));
  await calls.bind(cpu, fd, local);
  await calls.listen(cpu, fd, 4);
  return fd;
}

/**
 * A client of host 0 sends a message to host 1 and gets it back. A frame of the cable, as a tag and an EtherType.
 * @returns the result of the client's connection, the addresses as both sides see them, and the kinds of frames with their
 *   counts
 */
async function exchange(
  local: number | string,
  remote: number | string,
  lengthBytes = 100,
  options: TestOptions = {},
) {
  const net = new TestNetwork(options);
  const kinds = new Map<string, number>();
  const longest = [0, 0];
  net.onFrame = (from, frame) => {
    const view = new DataView(frame.buffer, frame.byteOffset, frame.length);
    const isTagged = view.getUint16(12) === 0x8100;
    const kind = isTagged
      ? `tag ${view.getUint16(14).toString(16)} ${view.getUint16(16).toString(16)}`
      : view.getUint16(12).toString(16);
    kinds.set(`${from} ${kind}`, (kinds.get(`${from} ${kind}`) ?? 0) + 1);
    longest[from] = Math.max(longest[from]!, frame.length);
    return true;
  };
  const names: SocketAddress[] = [];
  let outcome = '';
  net.run(1, 'server', async ({ cpu, memory }, calls) => {
    const listening = await listenAt(cpu, calls, { address: local, port });
    const fd = await calls.accept(cpu, listening);
    names[1] = await calls.getsockname(cpu, fd);
    const buffer = memory.map(lengthBytes);
    const got = await calls.recv(cpu, fd, buffer, lengthBytes, { waitAll: true });
    await calls.send(cpu, fd, buffer, got);
    await calls.recv(cpu, fd, buffer, 1);
  });
  net.run(0, 'client', async ({ cpu, memory }, calls) => {
    await cpu.sleep(ms);
    const fd = await calls.socket(cpu, familyOf(remote));
    outcome = await errnoOf(calls.connect(cpu, fd, { address: remote, port }));
    if (outcome !== 'returned undefined') return;
    names[0] = { ...(await calls.getsockname(cpu, fd)), port: 0 };
    const buffer = memory.map(lengthBytes);
    const bytes = Uint8Array.from({ length: lengthBytes }, (_, at) => at * 7);
    await memory.store(cpu, buffer, bytes);
    await calls.send(cpu, fd, buffer, lengthBytes);
    const got = await calls.recv(cpu, fd, buffer, lengthBytes, { waitAll: true });
    const back = new Uint8Array(lengthBytes);
    await memory.load(cpu, buffer, back);
    outcome =
      got === lengthBytes && back.every((byte, at) => byte === bytes[at]) ? 'came back' : `${got} bytes`;
  });
  await net.toEnd(1, 2000 * ms).catch(() => {
    outcome ||= 'waits';
  });
  return { net, outcome, names, kinds: [...kinds.keys()].toSorted(), longest };
}

const [tag0, tag1] = vlanPriorities.map((priority) => ((priority << 13) | vlanId).toString(16));
const zone = `%eth0.${vlanId}`;

describe('a connection', () => {
  test.each([
    ['IPv4', 0, addresses[1], addresses, ['0 800', '1 800']],
    ['IPv6', '::', ipv6Addresses[1], ipv6Addresses, ['0 86dd', '1 86dd']],
    [
      'IPv6 of the link alone',
      `${linkLocalAddresses[1]}%eth0`,
      `${linkLocalAddresses[1]}%eth0`,
      linkLocalAddresses.map((address) => `${address}%eth0`),
      ['0 86dd', '1 86dd'],
    ],
    [
      'IPv4 of a socket of IPv6, on either side',
      '::',
      '::ffff:10.0.0.2',
      ['::ffff:10.0.0.1', '::ffff:10.0.0.2'],
      ['0 800', '1 800'],
    ],
    ['IPv4 of a VLAN', 0, vlanAddresses[1], vlanAddresses, [`0 tag ${tag0} 800`, `1 tag ${tag1} 800`]],
    [
      'IPv6 of a VLAN',
      vlanIpv6Addresses[1],
      vlanIpv6Addresses[1],
      vlanIpv6Addresses,
      [`0 tag ${tag0} 86dd`, `1 tag ${tag1} 86dd`],
    ],
    [
      'IPv6 of the link of a VLAN',
      '::',
      `${linkLocalAddresses[1]}${zone}`,
      linkLocalAddresses.map((address) => `${address}${zone}`),
      [`0 tag ${tag0} 86dd`, `1 tag ${tag1} 86dd`],
    ],
  ] as const)('goes over %s, and says so', async (_what, local, remote, ends, kinds) => {
    const found = await exchange(local, remote);
    expect(found.outcome).toBe('came back');
    expect(found.names).toEqual([
      { address: ends[0], port: 0 },
      { address: ends[1], port },
    ]);
    expect(found.kinds).toEqual(kinds);
  });

  test.each([
    ['IPv4', addresses[1], 1514],
    ['IPv6', ipv6Addresses[1], 1514],
    ['IPv4 of a VLAN', vlanAddresses[1], 1518],
    ['IPv6 of a VLAN', vlanIpv6Addresses[1], 1518],
  ] as const)(
    'fills frames of its MTU over %s, with the tag in addition',
    async (_what, remote, lengthBytes) => {
      const found = await exchange(typeof remote === 'number' ? 0 : '::', remote, 100_000);
      expect([found.outcome, ...found.longest]).toEqual(['came back', lengthBytes, lengthBytes]);
      const [sender, receiver] = found.net.nodes.map(({ network }) => network.counts);
      // Each host's share of the cable's bytes.
      expect(sender!.bytesSent).toBe(receiver!.bytesReceived);
      expect([sender!.framesSent, receiver!.retransmissions]).toEqual([receiver!.framesReceived, 0]);
    },
  );

  test.each([
    ['long frames of IPv6', ipv6Addresses[1], 9014],
    ['long frames of IPv6 of a VLAN', vlanIpv6Addresses[1], 9018],
  ])('fills %s', async (_what, remote, lengthBytes) => {
    const found = await exchange('::', remote, 100_000, { driver: { mtu: 9000 } });
    expect([found.outcome, ...found.longest]).toEqual(['came back', lengthBytes, lengthBytes]);
  });

  test('RFC 1122, 3.3.4.2: is refused at an address without a listener, on any interface', async () => {
    expect((await exchange(0, vlanIpv6Addresses[1])).outcome).toBe('ECONNREFUSED');
    expect((await exchange(addresses[1], vlanAddresses[1])).outcome).toBe('ECONNREFUSED');
    expect((await exchange(vlanIpv6Addresses[1], ipv6Addresses[1])).outcome).toBe('ECONNREFUSED');
    expect((await exchange(`${linkLocalAddresses[1]}%eth0`, `${linkLocalAddresses[1]}${zone}`)).outcome).toBe(
      'ECONNREFUSED',
    );
  });

  test('with the same ports on two interfaces are two', async () => {
    const net = new TestNetwork();
    const got: number[] = [];
    net.run(1, 'server', async ({ cpu, memory }, calls) => {
      const listening = await listenAt(cpu, calls, { address: '::', port });
      const buffer = memory.map(4096);
      for (const bytes of [10, 20]) {
        const fd = await calls.accept(cpu, listening);
        got.push(bytes, await calls.recv(cpu, fd, buffer, 100, { waitAll: true }));
      }
    });
    net.run(0, 'client', async ({ cpu, memory }, calls) => {
      await cpu.sleep(ms);
      const buffer = memory.map(4096);
      for (const [address, bytes] of [
        [`${linkLocalAddresses[1]}%eth0`, 10],
        [`${linkLocalAddresses[1]}${zone}`, 20],
      ] as const) {
        const fd = await calls.socket(cpu, 'AF_INET6');
        await calls.connect(cpu, fd, { address, port });
        await calls.send(cpu, fd, buffer, bytes);
        await calls.close(cpu, fd);
      }
    });
    await net.toEnd();
    expect(got).toEqual([10, 10, 20, 20]);
  });
});

describe('a call with an address', () => {
  test('of another family, of no host, or of no interface is rejected', async () => {
    const net = new TestNetwork();
    const seen: Record<string, string> = {};
    net.run(0, 'program', async ({ cpu }, calls) => {
      const cases: readonly (readonly [Family, number | string])[] = [
        ['AF_INET', '::'],
        ['AF_INET6', 0],
        ['AF_INET', -1],
        ['AF_INET6', '10.0.0.1'],
        ['AF_INET6', 'fe80::1'],
        ['AF_INET6', 'fe80::1%eth1'],
        ['AF_INET6', `${linkLocalAddresses[0]}%eth0`],
        ['AF_INET6', `${linkLocalAddresses[1]}%eth0`],
        ['AF_INET6', ipv6Addresses[1]],
        ['AF_INET6', `${vlanIpv6Addresses[0]}%eth0`],
        ['AF_INET6', '::ffff:10.0.0.1'],
        ['AF_INET6', '::ffff:10.0.0.2'],
      ];
      for (const [family, address] of cases) {
        const fd = await calls.socket(cpu, family);
        const bound = await errnoOf(calls.bind(cpu, fd, { address, port: 0 }));
        const name = await calls.getsockname(cpu, fd);
        seen[`${family} ${address}`] = bound === 'returned undefined' ? String(name.address) : bound;
        await calls.close(cpu, fd);
      }
    });
    await net.toEnd();
    expect(seen).toEqual({
      'AF_INET ::': 'EAFNOSUPPORT',
      'AF_INET6 0': 'EAFNOSUPPORT',
      'AF_INET -1': 'EINVAL',
      'AF_INET6 10.0.0.1': 'EINVAL',
      'AF_INET6 fe80::1': 'EINVAL',
      'AF_INET6 fe80::1%eth1': 'ENODEV',
      [`AF_INET6 ${linkLocalAddresses[0]}%eth0`]: `${linkLocalAddresses[0]}%eth0`,
      [`AF_INET6 ${linkLocalAddresses[1]}%eth0`]: 'EADDRNOTAVAIL',
      [`AF_INET6 ${ipv6Addresses[1]}`]: 'EADDRNOTAVAIL',
      [`AF_INET6 ${vlanIpv6Addresses[0]}%eth0`]: 'EADDRNOTAVAIL',
      'AF_INET6 ::ffff:10.0.0.1': '::ffff:10.0.0.1',
      'AF_INET6 ::ffff:10.0.0.2': 'EADDRNOTAVAIL',
    });
  });

  test('from a bound socket is sent from its address, or not at all', async () => {
    const net = new TestNetwork();
    const seen: string[] = [];
    net.run(0, 'program', async ({ cpu }, calls) => {
      for (const remote of [vlanIpv6Addresses[1], ipv6Addresses[1], '::ffff:10.0.0.2']) {
        const fd = await calls.socket(cpu, 'AF_INET6');
        await calls.bind(cpu, fd, { address: vlanIpv6Addresses[0], port: 0 });
        seen.push(await errnoOf(calls.connect(cpu, fd, { address: remote, port })));
        await calls.close(cpu, fd);
      }
    });
    await net.toEnd();
    expect(seen).toEqual(['ECONNREFUSED', 'EHOSTUNREACH', 'EHOSTUNREACH']);
  });
});

describe('cycles', () => {
  const causes = ['systemCall', 'socket', 'copy', 'protocol', 'checksum', 'driver'] as const;
  /**
   * Cycles of both hosts by cause, for a message that goes there and back in one segment each, and the number of its frames
   * that both have sent and received.
   */
  async function cyclesOf(remote: number | string) {
    const { net, outcome } = await exchange(typeof remote === 'number' ? 0 : '::', remote, 1000);
    expect(outcome).toBe('came back');
    const cycles = causes.map(() => 0);
    let frames = 0;
    for (const { host, network } of net.nodes) {
      const report = host.report();
      expect(report.isBalanced).toBe(true);
      frames += network.counts.framesSent + network.counts.framesReceived;
      for (const core of report.cores)
        for (const [at, cause] of causes.entries()) cycles[at]! += core.cycles[cause] ?? 0;
    }
    return { cycles, frames };
  }

  test('are those of IPv4 over IPv6; of a VLAN, 100 more for each frame that is sent or received', async () => {
    const plain = await cyclesOf(addresses[1]);
    const ipv6 = await cyclesOf(ipv6Addresses[1]);
    const vlan = await cyclesOf(vlanAddresses[1]);
    const vlanIpv6 = await cyclesOf(vlanIpv6Addresses[1]);
    expect(plain.frames).toBeGreaterThan(10);
    expect(ipv6).toEqual(plain);
    expect(vlanIpv6).toEqual(vlan);
    expect(vlan.frames).toBe(plain.frames);
    expect(vlan.cycles.map((cycles, at) => cycles - plain.cycles[at]!)).toEqual([
      0,
      0,
      0,
      100 * vlan.frames,
      0,
      0,
    ]);
  });
});
