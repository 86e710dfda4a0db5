/** Each judge of fabrics finds a falsified account of a story, and nothing in the true one. */
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { LinkType, readCapture, writeCapture } from '../../../analyser/capture/index.ts';
import type { Report } from '../../../machine/index.ts';
import type { BlockState } from '../../../sim/index.ts';
import { type FabricStory, renderFabricStory } from '../fabric-story.ts';
import { playOnce } from '../play-fabric.ts';
import type { PlayedFabric } from '../played.ts';
import { fabricJudges } from './index.ts';

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const infiniband: FabricStory = {
  seed: 0,
  fabric: 'ring:4',
  cables: [],
  set: { 'host.memory.sizeMib': 64, 'machine.routing': 'up-down' },
  faults: [],
  flows: [
    { kind: 'write', from: 0, to: 1, sizeBytes: 4096, messages: 3, window: 2 },
    { kind: 'read', from: 0, to: 2, sizeBytes: 4096, messages: 3, window: 2 },
    { kind: 'send', from: 1, to: 3, sizeBytes: 3000, messages: 3, window: 2 },
    { kind: 'datagram', from: 2, to: 3, sizeBytes: 500, messages: 3, window: 2 },
    { kind: 'group', from: 1, to: 1, sizeBytes: 500, messages: 2, window: 2 },
  ],
  again: { partition: 'single', shuffleSeed: 1 },
};
const ethernet: FabricStory = {
  ...infiniband,
  fabric: 'dumbbell:4',
  set: { 'host.memory.sizeMib': 64, 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' },
};

let played: PlayedFabric;
let onEthernet: PlayedFabric;
beforeAll(async () => {
  played = await playOnce(infiniband);
  onEthernet = await playOnce(ethernet);
});

const found = (of: PlayedFabric): string[] =>
  fabricJudges.flatMap(({ name, judge }) => judge(of).map((what) => `${name}: ${what}`));

/** The account with another outcome of a flow at a host. */
const withEnd = (host: number, flow: number, change: object): PlayedFabric => ({
  ...played,
  outcomes: played.outcomes.map((outcome, node) =>
    node === host
      ? { ...outcome, ends: outcome.ends.map((end) => (end.flow === flow ? { ...end, ...change } : end)) }
      : outcome,
  ),
});

const withSwitch = (of: PlayedFabric, node: number, change: (state: BlockState) => object): PlayedFabric => ({
  ...of,
  ended: new Map(of.ended).set(node, { ...of.ended.get(node)!, ...change(of.ended.get(node)!) }),
});

const withWire = (of: PlayedFabric, change: (wire: Report['wire']) => Report['wire']): PlayedFabric => ({
  ...of,
  report: { ...of.report, wire: change(of.report.wire) },
});

describe('the judges of fabrics', () => {
  it('find nothing in a true account', () => {
    expect(found(played)).toEqual([]);
    expect(found(onEthernet)).toEqual([]);
  });

  it.each([
    [
      'an error',
      0,
      0,
      { statuses: ['SUCCESS', 'RETRY_EXC_ERR', 'WR_FLUSH_ERR'] },
      'message 1 ended with RETRY',
    ],
    ['another first error', 0, 0, { statuses: ['WR_FLUSH_ERR'] }, 'ended with WR_FLUSH_ERR'],
    ['too few completions', 0, 0, { statuses: ['SUCCESS'] }, '1 of 3 messages completed'],
    ['wrong bytes of a WRITE', 1, 0, { wrong: [1] }, 'message 1 completed, and has other bytes'],
    ['SENDs out of order', 3, 2, { came: [0, 2, 1] }, 'SENDs came as 0,2,1'],
    ['datagrams twice', 3, 3, { came: [0, 1, 1] }, 'datagrams came twice: 0,1,1'],
    ['a lost datagram', 3, 3, { came: [0, 2] }, '2 of 3 datagrams came'],
    ['a datagram with other bytes', 3, 3, { wrong: [7] }, '1 messages came with other bytes'],
    ['a member without a datagram', 0, 4, { came: [0] }, 'host 0: 1 of 2 datagrams came'],
  ])('delivery: %s', (_what, host, flow, change, message) => {
    expect(found(withEnd(host, flow, change)).join()).toContain(message);
  });

  it('delivery: recovery and drops where nothing may be lost', () => {
    const [node, ...rest] = played.report.nodes;
    const hca = { ...node!.hca, transport: { ackTimeout: 1 } };
    const recovered = { ...played, report: { ...played.report, nodes: [{ ...node!, hca }, ...rest] } };
    expect(found(recovered).join()).toContain('host 0 recovered');
    const lost = withWire(played, ([row, ...others]) => [{ ...row!, lost: 1 }, ...others]);
    expect(found(lost).join()).toContain('1 lost');
  });

  it('permit time-outs without a loss with selective repeat, unless they outlast all congestion', () => {
    const [node, ...rest] = played.report.nodes;
    const recoveryOf = (transport: object, retransmitLowUs: number): string => {
      const { config } = played.report;
      const hca = {
        ...config.hca,
        lossRecovery: 'selective-repeat',
        retransmitLowUs,
        retransmitHighUs: 5000,
      };
      const nodes = [{ ...node!, hca: { ...node!.hca, transport } }, ...rest];
      const report = { ...played.report, nodes, config: { ...config, hca } } as Report;
      return found({ ...played, report }).join();
    };
    expect(recoveryOf({ ackTimeout: 1 }, 100)).toBe('');
    expect(recoveryOf({ ackTimeout: 1 }, 5000)).toContain('host 0 recovered');
    expect(recoveryOf({ ackTimeout: 1, sequenceNakSent: 1 }, 100)).toContain('host 0 recovered');
  });

  it('routes: entries that lead astray, or in a circle', () => {
    // Switches 4 to 7 of the ring have their hosts at port 1; LIDs count from 1.
    const astray = (entries: (lid: number, port: number) => number): PlayedFabric => ({
      ...played,
      fresh: new Map(
        [...played.fresh].map(([node, state]) => {
          const { linear, groupPorts } = state['tables'] as unknown as {
            readonly linear: readonly (readonly [number, number])[];
            readonly groupPorts: readonly number[];
          };
          const tables = { linear: linear.map(([lid, port]) => [lid, entries(lid, port)]), groupPorts };
          return [node, { ...state, tables } as unknown as BlockState];
        }),
      ),
    });
    expect(found(astray((lid, port) => (lid === 2 ? 1 : port))).join()).toContain(
      'from host 2 to host 1 end at 2',
    );
    expect(found(astray(() => 9)).join()).toContain('end at no entry');
    // Hosts have neighbours both ways: with these routes each packet takes the same way around.
    const around = astray((_lid, port) => (port === 1 ? 1 : 2));
    expect(found(around).some((text) => text.startsWith('routes: '))).toBe(true);
  });

  it('packets: a capture that is cut judges nothing, and says so', () => {
    const cut = [0, 1, 2, 3].map((node) => ({
      ...{ linkType: LinkType.ERF, name: `hca${node}`, description: '', bitsPerSecond: 1n },
      droppedPackets: node === 2 ? 1 : 0,
    }));
    const inCut = found({ ...played, capture: writeCapture('', cut, []) });
    expect(inCut.join()).toContain('the packets of host 2 were not judged: the capture is cut');
    const fewer = found({ ...played, capture: writeCapture('', cut.slice(0, 2), []) });
    expect(fewer.join()).toContain('the capture has 2 ends, and 4 hosts');
  });

  it('balance: packets that are missing on a cable, or in a switch', () => {
    const more = withWire(played, (wire) =>
      wire.map((row) => (row.from === 0 ? { ...row, packets: row.packets + 1 } : row)),
    );
    expect(found(more).join()).toMatch(/cable 0 to 4: \d+ packets arrived of/);
    const [device, ...rest] = onEthernet.report.switches!;
    const switches = [{ ...device!, copies: device!.copies + 1 }, ...rest];
    const copied = { ...onEthernet, report: { ...onEthernet.report, switches } };
    expect(found(copied).join()).toContain('switch 4: ');
    const failures = ['a ledger does not balance'];
    const checks = { ...played.report.checks, wire: { holds: false, failures } };
    expect(found({ ...played, report: { ...played.report, checks } }).join()).toContain(failures[0]!);
  });

  it('packets: other numbers than the report has, and packets of other hosts', () => {
    const fewer = withWire(played, (wire) =>
      wire.map((row) => (row.to === 0 ? { ...row, packets: row.packets - 1 } : row)),
    );
    expect(found(fewer).join()).toMatch(/packets: host 0: \d+ packets arrived/);
    const lids = {
      ...played,
      outcomes: played.outcomes.map((outcome) => ({ ...outcome, lid: outcome.lid + 1 })),
    };
    expect(found(lids).join()).toContain('a packet for another host');
  });

  /** The account of another story, with other parameters. */
  const withStory = (story: Partial<FabricStory>, config: object = {}): PlayedFabric => {
    const own = played.report.config;
    const hca = { ...own.hca, transmitBufferPackets: 0, responseBufferPackets: 0 };
    const changed = { ...own, hca, switch: { ...own.switch, ...config } };
    return {
      ...played,
      story: { ...played.story, ...story },
      report: { ...played.report, config: changed },
    };
  };

  it('partitions: packets and messages of hosts that share none', () => {
    const memberships = [1, 2, 2, 2].map((own) => ({ pkey: 0x8000 + own, partitions: [own] }));
    const texts = found(withStory({ memberships })).join();
    expect(texts).toContain('flow 0 (write from 0 to 1): requests to another partition ended with SUCCESS');
    expect(texts).toContain('flow 4 (group from 1 to 1): host 0: message 0 came from another partition');
    expect(texts).toContain('a packet from host 1, of a partition that switches do not accept');
    const limited = [0, 1, 2, 3].map(() => ({ pkey: 1, partitions: [1] }));
    const ofLimited = found(withStory({ memberships: limited }));
    expect(ofLimited.join()).toContain('flow 3 (datagram from 2 to 3): host 3: message 0 came from another');
    expect(ofLimited.join()).not.toContain('that switches do not accept');
  });

  it('rates: packets that leave sooner than their path allows, of WRITEs and of READ responses', () => {
    const flows = infiniband.flows.map((flow) => ({ ...flow, rate: 2 }));
    const texts = found(withStory({ flows })).filter((text) => text.startsWith('rates: '));
    expect(texts.map((text) => text.slice(0, 14))).toEqual(
      expect.arrayContaining(['rates: flow 0 ', 'rates: flow 1 ']),
    );
  });

  it('limits: drops without a limit, and packets older than one', () => {
    const [device, ...others] = played.report.switches!;
    const [port, ...rest] = device!.ports;
    const dropped = (reason: string, config: object): string => {
      const own = withStory({}, config);
      const ports = [{ ...port!, notForwarded: { [reason]: 1 } }, ...rest];
      return found({
        ...own,
        report: { ...own.report, switches: [{ ...device!, ports }, ...others] },
      }).join();
    };
    expect(dropped('hoqLife', { hoqLife: 20 })).toContain('1 drops by HOQLife without a limit');
    expect(dropped('vlStalled', { vlStallCount: 0 })).toContain('1 drops of lanes that no drop stalled');
    expect(dropped('switchLifetime', {})).toContain('1 drops by LifeTimeValue without a limit');
    const { interfaces, frames } = readCapture(played.capture!);
    const ends = interfaces.map((end) => ({ ...end, description: '', bitsPerSecond: 1n }));
    const late = frames.map((frame) => {
      const direction = frame.direction === 'inbound' ? 'inbound' : 'outbound';
      return {
        ...frame,
        direction,
        timePs: frame.timePs + (direction === 'inbound' ? 1_000_000_000n : 0n),
      } as const;
    });
    const old = { ...withStory({}, { lifetimeValue: 0 }), capture: writeCapture('', ends, late) };
    expect(found(old).join()).toContain('in switches for longer than their limits allow');
  });

  it('quiet: what switches still hold', () => {
    const blocks = withSwitch(played, 4, ({ ports }) => {
      const [first, ...rest] = ports as unknown as { readonly link: { readonly buffers: object } }[];
      const link = { ...first!.link, buffers: { ...first!.link.buffers, freeBlocks: 3 } };
      return { ports: [{ ...first!, link }, ...rest] };
    });
    expect(found(blocks).join()).toContain('port 1 has 3 free blocks of ');
    const tables = withSwitch(played, 4, () => ({ tables: { linear: [], groupPorts: [] } }));
    expect(found(tables).join()).toContain('its tables differ');
    const bytes = withSwitch(onEthernet, 4, () => ({ buffer: { usedBytes: 64, sharedUsedBytes: 0 } }));
    expect(found(bytes).join()).toContain('its buffer holds 64 bytes');
    const stopped = withSwitch(onEthernet, 5, ({ ports }) => {
      const [first, ...rest] = ports as unknown as { readonly link: object }[];
      return { ports: [{ ...first!, link: { ...first!.link, flowControl: { isStopping: true } } }, ...rest] };
    });
    expect(found(stopped).join()).toContain('port 1 still stops its sender');
  });

  it('say which story it was', () => {
    expect(renderFabricStory(infiniband)).toEqual([
      'fabric story 0: ring:4, host.memory.sizeMib=64 machine.routing=up-down',
      'flow 0 kind=write,from=0,to=1,sizeBytes=4096,messages=3,window=2',
      'flow 1 kind=read,from=0,to=2,sizeBytes=4096,messages=3,window=2',
      'flow 2 kind=send,from=1,to=3,sizeBytes=3000,messages=3,window=2',
      'flow 3 kind=datagram,from=2,to=3,sizeBytes=500,messages=3,window=2',
      'flow 4 kind=group,from=1,to=1,sizeBytes=500,messages=2,window=2',
      'again partition=single,shuffleSeed=1',
    ]);
  });
});
