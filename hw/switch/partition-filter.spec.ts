/**
 * P_Keys at ports of a switch, set by subnet management packets that are written by offset: PortInfo byte 43 has PartitionEnforcementInbound in
 * bit 3 and PartitionEnforcementOutbound in bit 2 (IBTA volume 1, 14.2.5.6), P_KeyTable 32 entries of 16 bits (14.2.5.7), and a Notice its
 * details from byte 10 on (14.2.5.1; opensm 3.3.23, ntc_259).
 */
import { describe, expect, it } from 'vitest';
import { viewOf } from '../../base/index.ts';
import { pkeyPairs } from '../management/testing/pkey-pairs.ts';
import {
  ManagedBench as Fabric,
  infoOf,
  pkeyTable,
  portInfo,
  smp,
  startPs,
  switchInfo,
  tableOf,
  usPs,
} from './testing/managed-bench.ts';
import { benchSwitchLid, noSwitchDrops as noDrops, SwitchBench } from './testing/switch-bench.ts';

const [inbound, outbound] = [8, 4];

describe('P_Key enforcement', () => {
  it('IBTA 14.2.5.4: is offered by SwitchInfo both ways, with tables of 32 entries, and no filter of raw packets', async () => {
    const info = await new Fabric().send(1, switchInfo, 0);
    expect([viewOf(info).getUint16(14), info[16]]).toEqual([32, 0b1100_0000]);
  });

  it('IBTA 14.2.5.6, 14.2.5.7: is read back as it was set, port by port', async () => {
    const fabric = new Fabric();
    await fabric.enforce(2, [0x8001, 0x0002], inbound | outbound);
    expect((await fabric.send(1, portInfo, 2))[43]! & 0xf).toBe(inbound | outbound);
    expect((await fabric.send(1, portInfo, 3))[43]! & 0xf).toBe(0);
    expect([...(await fabric.send(1, pkeyTable, 2 << 16)).subarray(0, 6)]).toEqual([0x80, 1, 0, 2, 0, 0]);
    expect([...(await fabric.send(1, pkeyTable, 3 << 16)).subarray(0, 4)]).toEqual([0xff, 0xff, 0, 0]);
  });

  it.each(pkeyPairs)(
    'IBTA 10.9.3: entry %i and P_Key %i match: %s, at inputs and at outputs',
    async (entry, pkey, passes) => {
      for (const [port, direction] of [
        [2, inbound],
        [3, outbound],
      ] as const) {
        const fabric = new Fabric();
        await fabric.enforce(port, [entry], direction);
        await fabric.packet(1, 3, pkey);
        expect(fabric.countAt(2)).toBe(passes ? 1 : 0);
        const reason = direction === inbound ? 'inboundPkey' : 'outboundPkey';
        expect(fabric.bench.device.dropsOf(2)).toEqual({ ...noDrops, [reason]: passes ? 0 : 1 });
        const errors = passes ? [0, 0] : direction === inbound ? [1, 0] : [0, 1];
        expect(await fabric.constraintErrors(port)).toEqual(errors);
        expect(fabric.bench.device.ports[1]!.receiveBufferedBytes).toBe(0);
      }
    },
  );

  it('checks nothing in the direction that is not set, without either bit, and in lane 15', async () => {
    const fabric = new Fabric();
    await fabric.enforce(2, [0x8001], outbound);
    await fabric.enforce(3, [0x8001], inbound);
    await fabric.packet(1, 3, 0x8002);
    await fabric.enforce(2, [0x8001], inbound | outbound);
    await fabric.enforce(3, [0x8001], inbound | outbound);
    await fabric.packet(1, 3, 0x8002, 15);
    await fabric.enforce(2, [0x8001], 0);
    await fabric.enforce(3, [0x8001], 0);
    await fabric.packet(1, 3, 0x8002);
    expect(fabric.countAt(2)).toBe(3);
    expect(fabric.bench.device.dropsOf(2)).toEqual(noDrops);
  });

  it('of a group drops the copies for ports outside of the partition, and sends the others', async () => {
    const fabric = new Fabric();
    fabric.bench.device.tables.groupPorts = [1, 2, 3, 4];
    const told: unknown[] = [];
    fabric.bench.device.tap = {
      ...{ arrived() {}, stores() {}, waits() {}, leaves() {}, released() {}, stops() {}, settled() {} },
      dropped: ({ input }, reason, output) => told.push([input, reason, output]),
    };
    await fabric.enforce(3, [0x8001], outbound);
    await fabric.packet(1, 0xc001, 0x8002);
    // End 0 has two answers of management, too.
    expect([fabric.countAt(0) - 2, fabric.countAt(2), fabric.countAt(3)]).toEqual([1, 0, 1]);
    expect(fabric.bench.device.dropsOf(2)).toEqual({ ...noDrops, outboundPkey: 1 });
    expect(told).toEqual([[2, 'outboundPkey', 3]]);
    // Three outputs for one packet: two copies were added, and one of them was dropped.
    expect(fabric.bench.device.copyCount).toBe(2);
    expect((await fabric.constraintErrors(3))[1]).toBe(1);
  });

  it('IBTA 14.2.5.6: counts violations up to 255', async () => {
    const fabric = new Fabric();
    await fabric.enforce(2, [0x8001], inbound);
    for (let packet = 0; packet < 260; packet++) await fabric.packet(1, 3, 0x8002);
    expect(fabric.bench.device.dropsOf(2).inboundPkey).toBe(260);
    expect(await fabric.constraintErrors(2)).toEqual([255, 0]);
  });
});

describe('traps of a switch with a subnet manager at end 3', () => {
  const managed = async (): Promise<Fabric> => {
    const fabric = new Fabric(new SwitchBench(4, { management: { embedded: undefined } }));
    const { bench } = fabric;
    // LID 4, by a directed route: Set(PortInfo) of port 0, SubnetTimeOut 4, then ports 1 to 4 Armed and Active.
    const directed = (modifier: number, data: Uint8Array, atPs: number): void => {
      const payload = smp(2, portInfo, modifier, data);
      payload.set([1, 0x81, 1, 2, 0, 0, 1, 1]);
      viewOf(payload).setUint32(32, 0xffff_ffff);
      payload[129] = 1;
      bench.ends[3]!.sendDatagramAt(atPs, { payload });
    };
    const info = infoOf({ 17: 0, 51: 4 });
    viewOf(info).setUint16(16, benchSwitchLid);
    viewOf(info).setUint16(18, 4);
    directed(0, info, startPs);
    for (let port = 1; port <= 4; port++)
      for (const [step, state] of [3, 4].entries())
        directed(port, infoOf({ 32: state }), startPs + (2 * port + step) * 40 * usPs);
    await bench.runTo(startPs + 500 * usPs);
    const table = smp(2, pkeyTable, 2 << 16, tableOf([0x8001]));
    const enforced = smp(2, portInfo, 2, infoOf({ 43: inbound }));
    for (const [index, payload] of [table, enforced].entries())
      bench.ends[3]!.sendDatagramAt(startPs + (500 + 40 * index) * usPs, {
        payload,
        ...{ sourceLid: 4, destinationLid: benchSwitchLid },
      });
    await bench.runTo(startPs + 600 * usPs);
    return fabric;
  };

  it('IBTA 14.2.5.1: trap 259 names LIDs, P_Key, SL, QPs and the port to the subnet manager, at most once for a subnet timeout', async () => {
    const { bench } = await managed();
    const [, violator, , manager] = bench.ends;
    const before = manager!.arrivals.length;
    const packetAt = (atPs: number, pkey: number): void =>
      violator!.sendDatagramAt(atPs, {
        ...{ payload: new Uint8Array(256), virtualLane: 0, serviceLevel: 3, partitionKey: pkey },
        ...{ sourceQpn: 0x1234, destinationQpn: 0x56_789a, sourceLid: 2, destinationLid: 3 },
      });
    // 4.096 us × 2^4 = 65.536 us.
    for (const [us, pkey] of [
      [600, 0x8002],
      [620, 0x8003],
      [700, 0x8004],
    ] as const)
      packetAt(startPs + us * usPs, pkey);
    await bench.runTo(startPs + 1000 * usPs);
    const traps = manager!.arrivals.slice(before);
    expect(traps).toHaveLength(2);
    const bytes = Uint8Array.from(traps[0]!.payload);
    const view = viewOf(bytes);
    expect(traps[0]!.datagram).toMatchObject({
      ...{ virtualLane: 15, sourceLid: benchSwitchLid, destinationLid: 4, sourceQpn: 0, destinationQpn: 0 },
    });
    // Subn(Trap), class 1, version 1; attribute Notice.
    expect([...bytes.subarray(0, 4), view.getUint16(16), view.getUint32(20)]).toEqual([1, 1, 1, 5, 2, 0]);
    // Generic, security (2); producer: a switch (2); trap 259; issuer; toggle and count.
    expect([...bytes.subarray(64, 68)]).toEqual([0x82, 0, 0, 2]);
    expect([view.getUint16(68), view.getUint16(70), view.getUint16(72)]).toEqual([259, benchSwitchLid, 0]);
    const details = bytes.subarray(74, 128);
    expect([...details.subarray(2, 8)]).toEqual([0, 2, 0, 3, 0x80, 0x02]);
    expect([...details.subarray(8, 16)]).toEqual([0x30, 0, 0x12, 0x34, 0, 0x56, 0x78, 0x9a]);
    expect([...details.subarray(16, 48)]).toEqual(Array<number>(32).fill(0));
    expect([...details.subarray(48, 51)]).toEqual([2, 1, 2]);
    expect(viewOf(details).getUint16(0)).toBe(0b11_1111);
    expect(traps[1]!.payload.slice(74 + 6, 74 + 8)).toEqual([0x80, 0x04]);
    expect(bench.device.dropsOf(2).inboundPkey).toBe(3);
    expect(bench.device.management.counts.traps).toBe(2);
  });

  it('IBTA 14.2.5.1: trap 128 says that a link changed, once for a subnet timeout, and then for all changes since', async () => {
    const { bench } = await managed();
    const [, other, , manager] = bench.ends;
    const before = manager!.arrivals.length;
    for (const [us, isEnabled] of [
      [600, false],
      [610, true],
      [1000, false],
    ] as const)
      other!.at(startPs + us * usPs, () => other!.port.setEnabled(isEnabled));
    await bench.runTo(startPs + 2000 * usPs);
    const traps = manager!.arrivals.slice(before);
    const [first, second, third] = traps.map(({ timePs }) => timePs - startPs);
    expect(traps).toHaveLength(3);
    // 65.536 us later; a link that is trained again needs some time.
    expect(second! - first!).toBe(4_096_000 * 2 ** 4);
    expect(third!).toBeGreaterThan(1000 * usPs);
    const bytes = Uint8Array.from(traps[0]!.payload);
    const view = viewOf(bytes);
    expect([...bytes.subarray(0, 4), view.getUint16(16)]).toEqual([1, 1, 1, 5, 2]);
    // Generic, urgent (1); producer: a switch (2); trap 128; issuer; the LID of the switch.
    expect([...bytes.subarray(64, 68)]).toEqual([0x81, 0, 0, 2]);
    expect([68, 70, 72, 74, 76].map((at) => view.getUint16(at))).toEqual([
      128,
      benchSwitchLid,
      0,
      benchSwitchLid,
      0,
    ]);
    expect(bench.device.management.counts.traps).toBe(3);
  });

  it('IBTA 13.4.9: are not sent before a subnet manager has made itself known', async () => {
    const bench = new SwitchBench(4, { management: { embedded: undefined } });
    await bench.runTo(startPs + 200 * usPs);
    expect(bench.device.management.counts).toMatchObject({ traps: 0, sent: 0, noPath: 0 });
  });
});
