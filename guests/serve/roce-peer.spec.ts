/** A guest's slot at one end of an Ethernet cable, a simulated host with an HCA at the other; our own driver represents the guest's. */
import { describe, expect, it, vi } from 'vitest';
import { toHex } from '../../base/bytes.ts';
import { outsideOfMicrotasks } from '../../base/index.ts';
import { defaultsOf } from '../../base/parameter.ts';
import { ethernetPortOf } from '../../driver/ethernet-port.ts';
import { gidOfIpv4, gidOfMac } from '../../driver/gid.ts';
import { Driver, driverParameters } from '../../driver/index.ts';
import type { ProgramFunction } from '../../machine/index.ts';
import { getDeviceList, IBV_PORT_ACTIVE, openDevice, queryGidTable, queryPort } from '../../userlib/index.ts';
import { buildServeReport } from './serve-report.ts';
import { DrivenSlot } from './testing/driven-slot.ts';
import { reportPartsOf, reportPartsOfIdle } from './testing/report-parts.ts';
import { SlotBench } from './testing/slot-bench.ts';

vi.setConfig({ testTimeout: 120_000 });

const setOf = (roce: 'v1' | 'v2') => ({
  'hca.capability.linkLayer': 'ethernet',
  'hca.capability.roce': roce,
  ...(roce === 'v2' ? { 'pcie.function.deviceId': 0x1007 } : {}),
});
const macs = { guest: 0x0002_c900_0001, peer: 0x0002_c900_0011 } as const;

/** Waits until its port is active. @returns its GIDs */
const untilActive: ProgramFunction = async ({ cpu, verbs }) => {
  const context = await openDevice(getDeviceList(verbs)[0]!);
  while ((await queryPort(context, 1)).state !== IBV_PORT_ACTIVE) await cpu.sleep(1e8);
  return (await queryGidTable(context, 1)).map(({ gid }) => toHex(gid));
};

/** A counter of either end, to be falsified. */
interface Counted {
  readonly slots: readonly [EndCounted];
  readonly peer: { readonly hca: EndCounted['hca'] };
}

interface EndCounted {
  readonly hca: {
    readonly ethernet: {
      readonly transmitted: { frames: number };
      readonly received: { deliveredFrames: number };
    };
  };
}

describe('a simulated host with an HCA next to a guest, on Ethernet', () => {
  it.each(['v1', 'v2'] as const)(
    'is found by ARP and by Neighbor Discovery with RoCE %s, and balances',
    async (roce) => {
      const bench = await outsideOfMicrotasks(() => new SlotBench({ peer: untilActive, set: setOf(roce) }));
      const slot = await outsideOfMicrotasks(() => new DrivenSlot(bench));
      const own = { address: '10.0.0.1', portGuid: 0n, mac: macs.guest };
      const driver = new Driver({ ...slot.platform, neighbours: [own] }, defaultsOf(driverParameters));
      await driver.probe(slot.cpu);
      const port = ethernetPortOf(driver.device.ports[0]!)!;
      while (!bench.emulation.hcas[0]!.hca.ethernetPort!.isUp) await slot.turnOutside(bench.wallMs + 1);
      for (const address of [gidOfIpv4('10.0.0.2'), gidOfMac(macs.peer)])
        expect(toHex(await port.interface.lookUp(slot.cpu, address, 1000))).toBe('0002c9000011');
      for (let turns = 0; turns < 100 && !bench.emulation.peer!.hasEnded; turns++)
        await slot.turnOutside(bench.wallMs + 5);
      const report = buildServeReport(reportPartsOf(bench));
      const gids = ['fe80000000000000' + '0202c9fffe000011', '00000000000000000000ffff0a000002'];
      expect(report.peer!.program).toMatchObject({
        outcome: 'ended',
        result: gids.flatMap((gid) => (roce === 'v2' ? [gid, gid] : [gid])),
      });
      expect(report.peer!.node.neighbours).toEqual({ answers: 2, received: 2 });
      expect(report.checks).toMatchObject({ balanced: true, cpu: { holds: true }, wire: { holds: true } });
      // ARP in the shortest frame, 60 bytes and the FCS; a solicitation and its answer of 14 + 40 + 32, and the FCS.
      expect(report.wire.map(({ from, to, packets, bytes }) => [from, to, packets, bytes])).toEqual([
        [0, 1, 2, 64 + 90],
        [1, 0, 2, 64 + 90],
      ]);
      await driver.remove(slot.cpu);
    },
  );

  it.each([
    [
      'a frame that the guest sent',
      ({ slots: [{ hca }] }: Counted) => void hca.ethernet.transmitted.frames++,
    ],
    ['a frame that it sent itself', ({ peer: { hca } }: Counted) => void hca.ethernet.transmitted.frames++],
    ['a frame that reached it', ({ peer: { hca } }: Counted) => void hca.ethernet.received.deliveredFrames++],
  ])('is in a report that does not balance with one more of %s', async (_what, corrupt) => {
    const parts = await reportPartsOfIdle(setOf('v1'));
    expect(buildServeReport(parts).checks.balanced).toBe(true);
    corrupt(parts as unknown as Counted);
    expect(buildServeReport(parts).checks.balanced).toBe(false);
  });
});
