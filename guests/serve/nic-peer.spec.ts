/** A guest's slot at one end of an Ethernet cable, a simulated host with a NIC at the other; our own driver represents the guest's. */
import { expect, it, vi } from 'vitest';
import { toHex } from '../../base/bytes.ts';
import { outsideOfMicrotasks } from '../../base/index.ts';
import { defaultsOf } from '../../base/parameter.ts';
import { ethernetPortOf } from '../../driver/ethernet-port.ts';
import { gidOfIpv4 } from '../../driver/gid.ts';
import { Driver, driverParameters } from '../../driver/index.ts';
import type { ProgramFunction } from '../../machine/index.ts';
import { renderServeReport } from './render-serve-report.ts';
import { buildServeReport } from './serve-report.ts';
import { DrivenSlot } from './testing/driven-slot.ts';
import { reportPartsOf, reportPartsOfIdle } from './testing/report-parts.ts';
import { SlotBench } from './testing/slot-bench.ts';

vi.setConfig({ testTimeout: 120_000 });

const set = {
  'machine.adapter': 'nic',
  'hca.capability.linkLayer': 'ethernet',
  'hca.capability.roce': 'v1',
};

/** A counter of it, to be falsified. */
interface Counted {
  readonly slots: readonly [
    { readonly hca: { readonly ethernet: { readonly transmitted: { frames: number } } } },
  ];
  readonly peer: {
    readonly nic: { readonly counters: { transmitFrames: number; arrivals: number } };
    readonly host: { readonly cores: readonly [{ totalCycles: number }] };
  };
}

/** Waits until a neighbour has requested its host's MAC. */
const untilAsked: ProgramFunction = async ({ cpu, nic }) => {
  while (nic!.network!.counts.arpReplies === 0) await cpu.sleep(1e8);
  return 'asked';
};

it('finds its peer over the cable, which balances in both directions', async () => {
  const analysis = { capture: { ends: [{ node: 0 }, { node: 1 }], sizeBytes: 1 << 20 } };
  const bench = await outsideOfMicrotasks(() => new SlotBench({ peer: untilAsked, set, analysis }));
  const slot = await outsideOfMicrotasks(() => new DrivenSlot(bench));
  const own = { address: '10.0.0.1', portGuid: 0n, mac: 0x0002_c900_0001 };
  const driver = new Driver({ ...slot.platform, neighbours: [own] }, defaultsOf(driverParameters));
  await driver.probe(slot.cpu);
  const port = ethernetPortOf(driver.device.ports[0]!)!;
  while (!bench.emulation.hcas[0]!.hca.ethernetPort!.isUp) await slot.turnOutside(bench.wallMs + 1);
  const dgid = gidOfIpv4('10.0.0.2');
  const grh = { dgid, sgidIndex: port.gidIndexTo(dgid), flowLabel: 0, hopLimit: 1, trafficClass: 0 };
  const { mac } = await port.resolve(slot.cpu, {
    isGlobal: 1,
    grh,
    dlid: 0,
    sl: 0,
    srcPathBits: 0,
    portNum: 1,
  });
  // A locally administered address of node 1.
  expect(toHex(mac)).toBe('021234000002');
  for (let turns = 0; turns < 100 && !bench.emulation.peer!.hasEnded; turns++)
    await slot.turnOutside(bench.wallMs + 5);
  const report = buildServeReport(reportPartsOf(bench));
  expect(report.peer!.program).toMatchObject({ outcome: 'ended', result: 'asked' });
  expect(report.checks).toMatchObject({ balanced: true, cpu: { holds: true } });
  const { kernel, received, transmitted } = report.peer!.node.nic!;
  expect([kernel['framesReceived'], kernel['arpReplies'], transmitted['frames']]).toEqual([1, 1, 1]);
  expect(received['deliveredFrames']).toBe(report.nodes[0]!.hca.ethernet!.transmitted['frames']);
  // A frame of 60 bytes and its FCS each way.
  expect(report.wire.map(({ from, to, packets, bytes }) => [from, to, packets, bytes])).toEqual([
    [0, 1, 1, 64],
    [1, 0, 1, 64],
  ]);
  expect(renderServeReport(report)).toMatch(/kernel arpReplies +│ +1 /);
  expect(bench.emulation.captureDrops()).toEqual([
    { process: 'hca0', kept: 2, dropped: 0 },
    { process: 'nic1', kept: 2, dropped: 0 },
  ]);
  await driver.remove(slot.cpu);
});

it.each([
  ['frames that the cable had', (parts: Counted) => void parts.slots[0].hca.ethernet.transmitted.frames++],
  ['a frame of the MAC', (parts: Counted) => void parts.peer.nic.counters.transmitFrames++],
  ['a frame that the NIC has not come to', (parts: Counted) => void parts.peer.nic.counters.arrivals++],
  ['cycles of a core', (parts: Counted) => void parts.peer.host.cores[0].totalCycles++],
])('a report does not balance with one more of %s', async (_what, corrupt) => {
  const parts = await reportPartsOfIdle(set);
  expect(buildServeReport(parts).checks.balanced).toBe(true);
  corrupt(parts as unknown as Counted);
  expect(buildServeReport(parts).checks.balanced).toBe(false);
});
