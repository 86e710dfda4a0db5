import { beforeEach, describe, expect, it } from 'vitest';
import { MadClass, MadMethod, MadStatus, mad } from '../../../abi/mad.ts';
import {
  classPortInfo,
  PerformanceAttribute,
  performanceDataOffset,
  portCounters,
  portCountersExtended,
} from '../../../abi/performance-attributes.ts';
import type { Initial } from '../../../base/index.ts';
import { broughtUp, must } from '../testing/bring-up.ts';
import type { ControlBench } from '../testing/control-bench.ts';

let bench: ControlBench;

beforeEach(() => {
  bench = broughtUp();
  must(bench, 'INIT_PORT', { inputModifier: 1 });
  bench.cable.set(true);
  bench.run();
});

/** Executes one MAD of the performance class by MAD_IFC; returns status and attribute of the response. */
function exchange(method: number, attributeId: number, attribute: Uint8Array) {
  const inBox = mad.encode({
    baseVersion: 1,
    managementClass: MadClass.PERF_MGMT,
    classVersion: 1,
    method,
    attributeId,
  });
  inBox.set(attribute, performanceDataOffset);
  const { outBox } = must(bench, 'MAD_IFC', { inBox, inputModifier: 1, opcodeModifier: 3, outBytes: 256 });
  expect(outBox[3]).toBe(MadMethod.GET_RESP);
  return {
    status: (outBox[4]! << 8) | outBox[5]!,
    data: outBox.slice(performanceDataOffset),
  };
}

const basic = (method: number, fields: Initial<typeof portCounters> = {}) =>
  exchange(method, PerformanceAttribute.PORT_COUNTERS, portCounters.encode({ portSelect: 1, ...fields }));
const extended = (method: number, fields: Initial<typeof portCountersExtended> = {}) =>
  exchange(
    method,
    PerformanceAttribute.PORT_COUNTERS_EXTENDED,
    portCountersExtended.encode({ portSelect: 1, ...fields }),
  );
const read = () => portCounters.decode(basic(MadMethod.GET).data);
const readExtended = () => portCountersExtended.decode(extended(MadMethod.GET).data);

/**
 * Carries three packets out and two in. An acknowledgement is LRH 8, BTH 12, AETH 4, ICRC 4, VCRC 2: 30 bytes, of which
 * 28 count, 7 dwords. A SEND of 256 bytes is 8 + 12 + 256 + 4 + 2 = 282, of which 280 count, 70 dwords.
 */
function carry(): void {
  const { transmitted, received } = bench.cable;
  transmitted.packetCount += 3;
  transmitted.packetBytes += 3 * 282;
  received.delivered.packetTotal += 2;
  received.delivered.byteTotal += 2 * 30;
}

describe('the performance agent', () => {
  it('IBTA 13.4.8.1: reports what a ConnectX-3 reports: CapMask 0x1400', () => {
    const { status, data } = exchange(MadMethod.GET, PerformanceAttribute.CLASS_PORT_INFO, new Uint8Array(0));
    expect(status).toBe(MadStatus.OK);
    // Bytes of IBA 13.4.8.1: base version, class version, capability mask.
    expect([...data.subarray(0, 4)]).toEqual([1, 1, 0x14, 0x00]);
    expect(classPortInfo.decode(data).responseTime).toBe(16);
  });

  it('IBTA 16.1.3.5, 16.1.4.11: counts packets and dwords of the wire in both widths, at the offsets that the kernel reads', () => {
    carry();
    const { status, data } = basic(MadMethod.GET);
    const view = new DataView(data.buffer, data.byteOffset);
    expect(status).toBe(MadStatus.OK);
    // Linux drivers/infiniband/core/sysfs.c, PORT_PMA_ATTR: bit offsets 192, 224, 256, 288 of the attribute.
    expect([24, 28, 32, 36].map((offset) => view.getUint32(offset))).toEqual([3 * 70, 2 * 7, 3, 2]);
    const wide = extended(MadMethod.GET).data;
    const wideView = new DataView(wide.buffer, wide.byteOffset);
    // PORT_PMA_ATTR_EXT: bit offsets 64, 128, 192, 256.
    expect([8, 16, 24, 32].map((offset) => wideView.getBigUint64(offset))).toEqual([210n, 14n, 3n, 2n]);
  });

  it('IBTA 16.1.3.5: counts errors, discards, drops of lane 15, waits for credit and a link that goes down', () => {
    const { transmitted, received } = bench.cable;
    received.corrupted.packetTotal = 2;
    received.corrupted.byteTotal = 60;
    received.overruns = 1;
    received.managementDrops = 4;
    transmitted.discardedCount = 5;
    transmitted.creditWaitPs = 1_000_000; // 427 cycles of 427 MHz
    bench.cable.set(false);
    bench.run();
    bench.cable.set(true);
    bench.run();
    expect(read()).toMatchObject({
      portRcvErrors: 3,
      portRcvPkts: 2,
      portRcvData: 14,
      vl15Dropped: 4,
      portXmitDiscards: 5,
      portXmitWait: 427,
      linkDownedCounter: 1,
      symbolErrorCounter: 0,
    });
  });

  it('IBTA 16.1.3.5: stops at the largest value of each counter, and goes on in the wide ones', () => {
    const { transmitted, received } = bench.cable;
    transmitted.packetCount = 2 ** 32 + 7;
    transmitted.packetBytes = transmitted.packetCount * 30;
    received.corrupted.packetTotal = 70_000;
    received.corrupted.byteTotal = 70_000 * 30;
    expect(read()).toMatchObject({
      portXmitPkts: 2 ** 32 - 1,
      portXmitData: 2 ** 32 - 1,
      portRcvErrors: 65_535,
    });
    expect(readExtended()).toMatchObject({
      portXmitPkts: 2n ** 32n + 7n,
      portXmitData: 7n * (2n ** 32n + 7n),
    });
  });

  it('IBTA 16.1.3.5: sets the counters that are selected, to the values given, and no others', () => {
    carry();
    const answer = basic(MadMethod.SET, { counterSelect: 1 << 12, portXmitData: 0, portXmitPkts: 9 });
    expect(portCounters.decode(answer.data)).toMatchObject({ portXmitData: 0, portXmitPkts: 3 });
    basic(MadMethod.SET, { counterSelect: 1 << 15, portRcvPkts: 100 });
    carry();
    expect(read()).toMatchObject({ portXmitData: 210, portXmitPkts: 6, portRcvPkts: 102, portRcvData: 28 });
    // The wide counters are others.
    expect(readExtended()).toMatchObject({ portXmitData: 420n, portRcvPkts: 4n });
    extended(MadMethod.SET, { counterSelect: 0b1001, portXmitData: 0n, portRcvPkts: 5n });
    carry();
    expect(readExtended()).toMatchObject({ portXmitData: 210n, portRcvPkts: 7n, portXmitPkts: 9n });
    expect(read()).toMatchObject({ portXmitData: 420, portRcvPkts: 104 });
  });

  it('IBTA 16.1.3.5: clears PortXmitWait by the second selection alone', () => {
    bench.cable.transmitted.creditWaitPs = 1_000_000;
    basic(MadMethod.SET, { counterSelect: 0xffff });
    expect(read().portXmitWait).toBe(427);
    basic(MadMethod.SET, { counterSelect2: 1 });
    expect(read().portXmitWait).toBe(0);
  });

  it('IBTA 16.1.3.5: counts from a counter that had stopped and was cleared', () => {
    const { corrupted } = bench.cable.received;
    Object.assign(corrupted, { packetTotal: 70_000, byteTotal: 70_000 * 30 });
    basic(MadMethod.SET, { counterSelect: 1 << 3 });
    Object.assign(corrupted, { packetTotal: 70_002, byteTotal: 70_002 * 30 });
    expect(read().portRcvErrors).toBe(2);
  });

  it('keeps what is written to a counter of something that never happens here', () => {
    basic(MadMethod.SET, { counterSelect: 1, symbolErrorCounter: 77 });
    expect(read().symbolErrorCounter).toBe(77);
  });

  it.each([
    ['port 0', { portSelect: 0 }],
    ['a port that is not there', { portSelect: 2 }],
    ['all ports, which it does not offer', { portSelect: 255 }],
  ])('IBTA 13.4.7: refuses %s', (_what, fields) => {
    expect(basic(MadMethod.GET, fields).status).toBe(MadStatus.INVALID_FIELD);
    expect(extended(MadMethod.SET, fields).status).toBe(MadStatus.INVALID_FIELD);
  });

  it('IBTA 13.4.7: refuses what it does not know', () => {
    const nothing = new Uint8Array(0);
    expect(exchange(MadMethod.GET, 0x10, nothing).status).toBe(MadStatus.UNSUPPORTED_METHOD_ATTRIBUTE);
    expect(exchange(0x12, 0x12, nothing).status).toBe(MadStatus.UNSUPPORTED_METHOD);
  });

  it('begins at zero behind a reset of the device', () => {
    carry();
    basic(MadMethod.SET, { counterSelect: 1, symbolErrorCounter: 77 });
    bench.control.reset(bench.cycle);
    const agents = bench.commandSet.state.parts.agents;
    const request = mad.encode({
      baseVersion: 1,
      managementClass: MadClass.PERF_MGMT,
      classVersion: 1,
      method: 1,
    });
    mad.fields.attributeId.set(new DataView(request.buffer), 0, PerformanceAttribute.PORT_COUNTERS);
    request[performanceDataOffset + 1] = 1;
    const answer = agents.handle(request, { portNumber: 1, checksMkey: false, cycle: bench.cycle });
    const decoded = portCounters.decode((answer as Uint8Array).slice(performanceDataOffset));
    expect(decoded).toMatchObject({
      portXmitPkts: 0,
      portXmitData: 0,
      portRcvPkts: 0,
      symbolErrorCounter: 0,
    });
  });
});
