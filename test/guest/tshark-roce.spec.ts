/**
 * Frames of Ethernet hosts, read by tshark: every opcode of reliable and unreliable connections and of datagrams, by RoCE v1
 * and by v2 over IPv4 and IPv6, including lost and repeated ones, and the frames of neighbour discovery. tshark does not check
 * ICRCs: test/wire does.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { readCapture } from '../../analyser/capture/index.ts';
import { decodeEthernet, opcodeRow, opcodeTable } from '../../wire/index.ts';
import { programsOf, smallMachine } from '../machines.ts';
import type { LinuxScenario } from '../programs/linux-scenario.ts';
import { stepOf } from '../wire/linux-scenarios.ts';
import { fieldsOf, tsharkTree } from './tshark.ts';
import { type ComparedFields, otherFieldsOf, transportFields } from './tshark-fields.ts';

vi.setConfig({ testTimeout: 120_000 });

const folder = mkdtempSync(join(tmpdir(), 'hca-pcap-'));
afterAll(() => rmSync(folder, { recursive: true }));

/** Every form of every operation: one packet and several; READs of two and four. */
const steps = {
  rc:
    'send:10 send:10:i send:3000 send:3000:i send:64:V send:3000:V write:10 write:10:i write:3000 write:3000:i ' +
    'read:1 read:2048 read:4000 fadd:5 cswp:0',
  uc: 'send:10 send:10:i send:3000 send:3000:i write:10 write:10:i write:3000 write:3000:i',
  ud: 'send:10 send:10:i <send:77',
} as const;
type Transport = keyof typeof steps;
const transports: readonly Transport[] = ['rc', 'uc', 'ud'];

const scenarioOf = (transport: Transport, sgidIndex: number): LinuxScenario => ({
  transport,
  sgidIndex,
  mtu: 3,
  psns: [0xff_fffd, 256],
  readsMax: 4,
  limitMs: 5,
  hopLimit: 64,
  trafficClass: 0x68,
  flowLabel: 0xabcde,
  timeoutCode: 5,
  retryCount: 7,
  rnrRetryCount: 7,
  rnrTimerCode: 1,
  serverGives: true,
  steps: steps[transport].split(' ').map(stepOf),
});

interface Way {
  readonly version: 'v1' | 'v2';
  readonly sgidIndex: number;
  readonly network: ComparedFields;
}

/** GIDs are in the order link-local, IPv4; for each, version 1 precedes version 2. */
const ways: Readonly<Record<string, Way>> = {
  'RoCE v1': {
    version: 'v1',
    sgidIndex: 1,
    network: {
      'infiniband.grh.tclass': ({ grh }) => grh!.trafficClass,
      'infiniband.grh.flowlabel': ({ grh }) => grh!.flowLabel,
      'infiniband.grh.paylen': ({ grh }) => grh!.payloadLength,
      'infiniband.grh.nxthdr': ({ grh }) => grh!.nextHeader,
      'infiniband.grh.hoplmt': ({ grh }) => grh!.hopLimit,
    },
  },
  'RoCE v2 over IPv4': {
    version: 'v2',
    sgidIndex: 3,
    network: {
      'ip.dsfield.dscp': ({ ipv4 }) => ipv4!.differentiatedServices,
      'ip.dsfield.ecn': ({ ipv4 }) => ipv4!.ecn,
      'ip.len': ({ ipv4 }) => ipv4!.totalLength,
      'ip.ttl': ({ ipv4 }) => ipv4!.timeToLive,
      'udp.srcport': ({ udp }) => udp!.sourcePort,
      'udp.dstport': () => 4791,
      'udp.length': ({ udp }) => udp!.length,
    },
  },
  'RoCE v2 over IPv6': {
    version: 'v2',
    sgidIndex: 1,
    network: {
      'ipv6.tclass.dscp': ({ ipv6 }) => ipv6!.differentiatedServices,
      'ipv6.tclass.ecn': ({ ipv6 }) => ipv6!.ecn,
      'ipv6.flow': ({ ipv6 }) => ipv6!.flowLabel,
      'ipv6.plen': ({ ipv6 }) => ipv6!.payloadLength,
      'ipv6.hlim': ({ ipv6 }) => ipv6!.hopLimit,
      'udp.srcport': ({ udp }) => udp!.sourcePort,
      'udp.dstport': () => 4791,
    },
  },
};

/** The frames of both hosts as a capture file. The second packet of the first multi-packet WRITE is lost. */
async function capture({ version, sgidIndex }: Way, transport: Transport): Promise<Uint8Array> {
  const opcode = `${transport.toUpperCase()}_RDMA_WRITE_MIDDLE`;
  await using machine = await smallMachine({
    set: { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': version },
    faults: transport === 'ud' ? [] : [{ packet: 'lost', opcode, nth: 1 }],
    analysis: { capture: { ends: [{ node: 0 }], sizeBytes: 2 ** 24 } },
  });
  const args = scenarioOf(transport, sgidIndex);
  for (const program of programsOf('linux-scenario', 'linux', args)) await machine.load(program);
  await machine.run();
  return (await machine.capture())!;
}

const all = Object.keys(ways).flatMap((name) => transports.map((transport) => [name, transport] as const));

describe('frames of Ethernet hosts, read by tshark', () => {
  it.each(all)('have exactly the sent fields, in every opcode: %s, %s', async (name, transport) => {
    const way = ways[name]!;
    const bytes = await capture(way, transport);
    const file = join(folder, 'roce.pcapng');
    writeFileSync(file, bytes);
    const compared = { ...way.network, ...transportFields };
    const names = Object.keys(compared);
    const rows = await fieldsOf(await tsharkTree(), file, [...names, '_ws.malformed', 'frame.comment']);
    const { frames } = readCapture(bytes);
    expect(rows).toHaveLength(frames.length);
    const sent = new Set<string>();
    let lostCount = 0;
    frames.forEach(({ bytes: frame, comment }, at) => {
      const packet = decodeEthernet(frame);
      expect(rows[at]!.slice(names.length)).toEqual(['', comment]);
      if (packet.kind !== 'packet') return;
      sent.add(opcodeRow(packet.bth.opcode)!.name);
      if (comment.includes('lost')) lostCount++;
      expect([at, otherFieldsOf(compared, packet, rows[at]!)]).toEqual([at, []]);
    });
    // The numbers of masked atomics are emulator-specific (docs/reference/deviations.md).
    const meant = opcodeTable.filter(
      ({ service, name: opcode }) => service === transport.toUpperCase() && !opcode.includes('MASKED'),
    );
    expect(meant.filter(({ name: opcode }) => !sent.has(opcode)).map(({ name: opcode }) => opcode)).toEqual(
      [],
    );
    expect(lostCount).toBe(transport === 'ud' ? 0 : 1);
  });

  it('annex A17.9: answer marks of congestion by CNPs, whose opcode this tshark does not name', async () => {
    await using machine = await smallMachine({
      set: {
        'hca.capability.linkLayer': 'ethernet',
        'hca.capability.roce': 'v2',
        'hca.congestion.algorithm': 'dcqcn',
      },
      faults: [{ packet: 'congested', nth: '1-3' }],
      analysis: { capture: { ends: [{ node: 0 }], sizeBytes: 2 ** 22 } },
    });
    for (const program of programsOf('roce', 'oneByOne', 64)) await machine.load(program);
    await machine.run();
    const file = join(folder, 'cnp.pcapng');
    writeFileSync(file, (await machine.capture())!);
    const fields = [
      'infiniband.bth.opcode',
      'infiniband.bth.psn',
      'ip.dsfield.dscp',
      'ip.dsfield.ecn',
      'ip.len',
    ];
    const rows = await fieldsOf(await tsharkTree(), file, [...fields, '_ws.malformed']);
    const cnps = rows.filter(([opcode]) => opcode === '129');
    expect(cnps.length).toBeGreaterThan(0);
    expect(new Set(cnps.map((row) => row.join()))).toEqual(new Set(['129,0,48,0,60,']));
  });

  it('begin with an ARP request and its answer', async () => {
    const fields = [
      'eth.dst',
      'arp.opcode',
      'arp.src.hw_mac',
      'arp.src.proto_ipv4',
      'arp.dst.hw_mac',
      'arp.dst.proto_ipv4',
    ];
    const file = join(folder, 'arp.pcapng');
    writeFileSync(file, await capture(ways['RoCE v2 over IPv4']!, 'rc'));
    const rows = await fieldsOf(await tsharkTree(), file, [...fields, '_ws.malformed']);
    const [near, far] = ['00:02:c9:00:00:01', '00:02:c9:00:00:11'];
    const [asker, asked] = [far, near];
    expect(rows.slice(0, 2)).toEqual([
      ['ff:ff:ff:ff:ff:ff', '1', asker, '10.0.0.2', '00:00:00:00:00:00', '10.0.0.1', ''],
      [asker, '2', asked, '10.0.0.1', asker, '10.0.0.2', ''],
    ]);
    expect(rows.filter(([, opcode]) => opcode !== '')).toHaveLength(2);
  });

  it('begin with a solicitation of Neighbor Discovery and its advertisement, whose checksums are right', async () => {
    const fields = [
      'eth.dst',
      'ipv6.src',
      'ipv6.dst',
      'ipv6.hlim',
      'icmpv6.type',
      'icmpv6.checksum.status',
      'icmpv6.opt.linkaddr',
      'icmpv6.nd.ns.target_address',
      'icmpv6.nd.na.target_address',
      'icmpv6.nd.na.flag.s',
    ];
    const file = join(folder, 'nd.pcapng');
    writeFileSync(file, await capture(ways['RoCE v2 over IPv6']!, 'rc'));
    const rows = await fieldsOf(await tsharkTree(), file, [...fields, '_ws.malformed']);
    const [near, far] = ['fe80::202:c9ff:fe00:1', 'fe80::202:c9ff:fe00:11'];
    const GOOD = '1';
    expect(rows.slice(0, 2)).toEqual([
      ['33:33:ff:00:00:01', far, 'ff02::1:ff00:1', '255', '135', GOOD, '00:02:c9:00:00:11', near, '', '', ''],
      ['00:02:c9:00:00:11', near, far, '255', '136', GOOD, '00:02:c9:00:00:01', '', near, '1', ''],
    ]);
  });
});
