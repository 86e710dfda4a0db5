/**
 * Management packets through a switch at the end of real cables, as a neighbour sends them. Bytes of requests and expected bytes of
 * responses are written by offset, from IBTA volume 1, 14.2.5 and 16.1.3; the switch has 4 ports, its LID is 0x201.
 */

import { describe, expect, it } from 'vitest';
import { viewOf } from '../../../base/index.ts';
import { sameInAnyOrder } from '../testing/same-in-any-order.ts';
import { benchSwitchGuid, benchSwitchLid, SwitchBench } from '../testing/switch-bench.ts';

const usPs = 1_000_000;
/** The links are up by then. */
const startPs = 50 * usPs;
const [get, set, getResponse, trapRepress] = [0x01, 0x02, 0x81, 0x07];
const [lidRouted, directed] = [0x01, 0x81];
const attribute = {
  ...{ nodeDescription: 0x10, nodeInfo: 0x11, switchInfo: 0x12, guidInfo: 0x14, portInfo: 0x15, pkeys: 0x16 },
  ...{ slToVl: 0x17, arbitration: 0x18, linear: 0x19, multicast: 0x1b, smInfo: 0x20 },
} as const;
const [okay, badVersion, badMethod, badAttribute, badField] = [0, 0x04, 0x08, 0x0c, 0x1c];
const [down, init, armed, active] = [1, 2, 3, 4];

interface Smp {
  readonly managementClass?: number;
  readonly method?: number;
  readonly classVersion?: number;
  readonly attributeId?: number;
  readonly modifier?: number;
  readonly mkey?: bigint;
  readonly data?: Uint8Array;
}

/** One hop out: the switch is the first that it meets. */
function smp(given: Smp): Uint8Array {
  const bytes = new Uint8Array(256);
  const view = viewOf(bytes);
  const {
    managementClass = directed,
    method = get,
    classVersion = 1,
    attributeId = attribute.nodeInfo,
  } = given;
  bytes.set([1, managementClass, classVersion, method]);
  if (managementClass === directed) bytes.set([1, 1], 6);
  view.setBigUint64(8, 0x1234n);
  view.setUint16(16, attributeId);
  view.setUint32(20, given.modifier ?? 0);
  view.setBigUint64(24, given.mkey ?? 0n);
  if (managementClass === directed) view.setUint32(32, 0xffff_ffff);
  bytes.set(given.data ?? [], 64);
  bytes[129] = 1;
  return bytes;
}

/** Answers to requests that end 1 (port 2) sends 40 us apart. */
async function answers(bench: SwitchBench, requests: readonly Smp[]) {
  const [, end] = bench.ends;
  const before = end!.arrivals.length;
  requests.forEach((request, index) => {
    const isDirected = (request.managementClass ?? directed) === directed;
    const lids = isDirected ? {} : { sourceLid: 2, destinationLid: benchSwitchLid };
    end!.sendDatagramAt(bench.nowPs + startPs + 40 * index * usPs, { payload: smp(request), ...lids });
  });
  await bench.runTo(bench.nowPs + startPs + 40 * (requests.length + 2) * usPs);
  return end!.arrivals.slice(before).map(({ payload }) => {
    const view = viewOf(Uint8Array.from(payload));
    return {
      method: view.getUint8(3),
      status: view.getUint16(4) & 0x7fff,
      isBack: view.getUint16(4) >> 15 === 1,
      pointer: view.getUint8(6),
      data: view,
      u8: (offset: number) => view.getUint8(64 + offset),
      u16: (offset: number) => view.getUint16(64 + offset),
      bytes: payload.slice(64, 128),
    };
  });
}

/** Asks a fresh switch. */
async function ask(...requests: Smp[]) {
  return await answers(new SwitchBench(4), requests);
}

/** A switch that the fabric's subnet manager configures. */
const unconfigured = (): SwitchBench => new SwitchBench(4, { management: { embedded: undefined } });

const portInfoWith = (fields: Readonly<Record<number, number>>): Uint8Array => {
  const data = new Uint8Array(64);
  for (const [offset, value] of Object.entries(fields)) data[Number(offset)] = value;
  return data;
};

describe('Get of an attribute', () => {
  it('IBTA 14.2.5.3: NodeInfo names a switch of 4 ports, one GUID for all, and the port of entry', async () => {
    const [answer] = await ask({ attributeId: attribute.nodeInfo });
    expect(answer).toMatchObject({ method: getResponse, status: okay, isBack: true, pointer: 1 });
    expect([answer!.u8(0), answer!.u8(1), answer!.u8(2), answer!.u8(3), answer!.u8(36)]).toEqual([
      1, 1, 2, 4, 2,
    ]);
    for (const offset of [4, 12, 20]) expect(answer!.data.getBigUint64(64 + offset)).toBe(benchSwitchGuid);
  });

  it('IBTA 14.2.5.2: NodeDescription is text', async () => {
    const [answer] = await ask({ attributeId: attribute.nodeDescription });
    expect(new TextDecoder().decode(Uint8Array.from(answer!.bytes)).replace(/\0+$/, '')).toBe('bench switch');
  });

  it('IBTA 14.2.5.4: SwitchInfo has the sizes of the tables, and says that links have come up', async () => {
    const [answer] = await ask({ attributeId: attribute.switchInfo });
    // 48 Ki unicast entries, no random table, a group for each LID from 0xc000 to 0xfffe; all of the linear table forwards.
    expect([answer!.u16(0), answer!.u16(2), answer!.u16(4), answer!.u16(6)]).toEqual([
      0xc000, 0, 0x3fff, 0xbfff,
    ]);
    expect((answer!.u8(11) >> 2) & 1).toBe(1);
  });

  it('IBTA 14.2.5.6: PortInfo of port 0 has the LID, of the others the state of the link, of all the port of entry', async () => {
    const requests = [0, 2].map((modifier) => ({ attributeId: attribute.portInfo, modifier }));
    const [own, port] = await ask(...requests);
    expect([own!.u16(16), own!.u8(28), own!.u8(32) & 0xf]).toEqual([benchSwitchLid, 2, active]);
    expect([port!.u16(16), port!.u8(28), port!.u8(32) & 0xf, port!.u8(33) >> 4]).toEqual([0, 2, active, 5]);
  });

  it('IBTA 14.2.5.5: GUIDInfo has one GUID', async () => {
    const [answer, beyond] = await ask(
      { attributeId: attribute.guidInfo },
      { attributeId: attribute.guidInfo, modifier: 1 },
    );
    expect([answer!.data.getBigUint64(64), answer!.data.getBigUint64(72)]).toEqual([benchSwitchGuid, 0n]);
    expect(beyond!.status).toBe(badField);
  });

  it('IBTA 14.2.5.10, 14.2.5.12: forwarding tables have the entries by which packets move', async () => {
    const bench = new SwitchBench(4);
    bench.device.tables.groupPorts = [1, 3];
    const [linear, groups] = await answers(bench, [
      { attributeId: attribute.linear },
      { attributeId: attribute.multicast },
    ]);
    // The bench routes LID n to port n.
    expect(linear!.bytes.slice(0, 7)).toEqual([255, 1, 2, 3, 4, 255, 255]);
    expect([groups!.u16(0), groups!.u16(62)]).toEqual([0b1010, 0b1010]);
  });
});

describe('a request that cannot be carried out', () => {
  it.each<[string, Smp, number]>([
    ['another version of the class', { classVersion: 2 }, badVersion],
    ['a method other than Get and Set', { method: 0x03 }, badMethod],
    ['an attribute that a switch does not have', { attributeId: attribute.smInfo }, badAttribute],
    ['Set of NodeInfo', { method: set }, badAttribute],
    ['Set of NodeDescription', { method: set, attributeId: attribute.nodeDescription }, badAttribute],
    ['PortInfo of a port that it does not have', { attributeId: attribute.portInfo, modifier: 5 }, badField],
    [
      'a block of the linear table beyond its end',
      { attributeId: attribute.linear, modifier: 768 },
      badField,
    ],
    ['a block of groups beyond the end', { attributeId: attribute.multicast, modifier: 512 }, badField],
    ['a block of P_Keys beyond the end', { attributeId: attribute.pkeys, modifier: 1 }, badField],
    ['P_Keys of a port that it does not have', { attributeId: attribute.pkeys, modifier: 5 << 16 }, badField],
    [
      'SL to VL of a port that it does not have',
      { attributeId: attribute.slToVl, modifier: 0x0105 },
      badField,
    ],
    ['block 0 of the arbitration table', { attributeId: attribute.arbitration, modifier: 1 }, badField],
    [
      'a second block of a table of eight entries',
      { attributeId: attribute.arbitration, modifier: (2 << 16) | 1 },
      badField,
    ],
    [
      'block 5 of the arbitration table',
      { attributeId: attribute.arbitration, modifier: (5 << 16) | 1 },
      badField,
    ],
  ])('IBTA 13.4.7: %s is answered with its status', async (_, request, status) => {
    const [answer] = await ask(request);
    expect([answer!.method, answer!.status]).toEqual([getResponse, status]);
  });

  it.each<[string, Readonly<Record<number, number>>, number]>([
    ['a LID of a group for the switch', { 16: 0xc0, 17: 0x00 }, 0],
    ['an MTU beyond the capability', { 36: 6 << 4 }, 1],
    ['more lanes than there are', { 43: 5 << 4 }, 1],
    ['Active before Armed', { 32: active }, 1],
    ['a physical state that does not exist', { 33: 9 << 4 }, 1],
  ])('IBTA 14.2.5.6: %s is an invalid field, and nothing is changed', async (_, fields, modifier) => {
    const bench = unconfigured();
    const [refused, after] = await answers(bench, [
      { method: set, attributeId: attribute.portInfo, modifier, data: portInfoWith({ 38: 7, ...fields }) },
      { attributeId: attribute.portInfo, modifier },
    ]);
    expect(refused!.status).toBe(badField);
    expect([after!.u8(38), after!.u8(32) & 0xf]).toEqual([0, modifier === 0 ? active : init]);
  });

  it('a LinearFDBTop beyond the table is an invalid field', async () => {
    const data = portInfoWith({ 6: 0xc0 });
    const [answer] = await ask({ method: set, attributeId: attribute.switchInfo, data });
    expect(answer!.status).toBe(badField);
  });

  it('IBTA 13.4.6: TrapRepress, a response, and a MAD of another version have no answer', async () => {
    const bench = new SwitchBench(4);
    const response = smp({ method: getResponse });
    const other = smp({});
    other[0] = 2;
    const sent = [smp({ method: trapRepress }), response, other];
    for (const [index, payload] of sent.entries())
      bench.ends[1]!.sendDatagramAt(startPs + 40 * index * usPs, { payload });
    await bench.runTo(startPs + 200 * usPs);
    expect(bench.ends[1]!.arrivals).toEqual([]);
    expect(bench.device.management.counts).toMatchObject({ taken: 3, sent: 0, unanswered: 3 });
  });
});

describe('Set of an attribute', () => {
  it('IBTA 14.2.5.6: stores and returns the fields of a port, and 0 keeps what has no zero', async () => {
    const data = portInfoWith({
      29: 255,
      33: 2,
      35: 15,
      36: 5 << 4,
      38: 4,
      42: (7 << 5) | 0x10,
      43: (1 << 4) | 0xc,
    });
    const request = { method: set, attributeId: attribute.portInfo, data, modifier: 0x8000_0001 };
    const bench = new SwitchBench(4);
    const query = { attributeId: attribute.portInfo, modifier: 1 };
    const [answer, again] = await answers(bench, [request, query]);
    for (const each of [answer!, again!]) {
      expect(each.status).toBe(okay);
      // 1X and 4X; SDR, DDR and QDR.
      expect([each.u8(29), each.u8(35) & 0xf, each.u8(36) >> 4]).toEqual([3, 7, 5]);
      expect([each.u8(38), each.u8(42), each.u8(43)]).toEqual([4, 0xf0, 0x1c]);
    }
    const [kept] = await answers(bench, [{ ...request, data: portInfoWith({ 38: 9 }) }]);
    expect([kept!.u8(29), kept!.u8(36) >> 4, kept!.u8(43) >> 4, kept!.u8(38)]).toEqual([3, 5, 1, 9]);
  });

  it('IBTA 14.2.5.4: PortStateChange of 1 clears it; LifeTimeValue and LinearFDBTop are kept', async () => {
    const data = portInfoWith({ 6: 0x00, 7: 0x05, 11: (0x12 << 3) | 4 });
    const [answer] = await ask({ method: set, attributeId: attribute.switchInfo, data });
    expect([answer!.u16(6), answer!.u8(11)]).toEqual([5, 0x12 << 3]);
  });

  it('stores P_Keys, lanes and weights of each port alone', async () => {
    const pkeys = portInfoWith({ 0: 0xff, 1: 0xff, 2: 0x80, 3: 0x01 });
    const lanes = portInfoWith({ 0: 0x01, 7: 0xef });
    // Eight entries, the last in bytes 14 and 15.
    const weights = portInfoWith({ 0: 1, 1: 200, 14: 7, 15: 9 });
    const sets: [number, number, Uint8Array][] = [
      [attribute.pkeys, 3 << 16, pkeys],
      [attribute.slToVl, (2 << 8) | 4, lanes],
      [attribute.arbitration, (3 << 16) | 4, weights],
    ];
    const [pkeysNow, lanesNow, weightsNow, otherPkeys, otherLanes, otherWeights] = await ask(
      ...sets.map(([attributeId, modifier, data]) => ({ method: set, attributeId, modifier, data })),
      { attributeId: attribute.pkeys, modifier: 2 << 16 },
      { attributeId: attribute.slToVl, modifier: (4 << 8) | 2 },
      { attributeId: attribute.arbitration, modifier: (1 << 16) | 4 },
    );
    expect(pkeysNow!.bytes).toEqual([...pkeys]);
    expect(lanesNow!.bytes).toEqual([...lanes]);
    expect(weightsNow!.bytes).toEqual([...weights]);
    expect(otherPkeys!.bytes.slice(0, 4)).toEqual([0xff, 0xff, 0, 0]);
    expect(otherLanes!.bytes).toEqual(Array(64).fill(0));
    // The one lane of the cables, with 64 times 64 bytes, in the table of low priority.
    expect(otherWeights!.bytes).toEqual([0, 64, ...Array(62).fill(0)]);
  });

  it('IBTA 14.2.4: needs the M_Key once there is one; a Get does not, and does not see it, with protect bits 1', async () => {
    const bench = new SwitchBench(4);
    const key = portInfoWith({ 7: 0x77, 34: 1 << 6 });
    const info = { attributeId: attribute.portInfo, modifier: 0 };
    const replies = await answers(bench, [
      { ...info, method: set, data: key },
      { ...info, method: set, data: key, mkey: 5n },
      info,
      { ...info, mkey: 0x77n },
      { ...info, method: set, data: portInfoWith({ 7: 0x77, 34: 2 << 6 }), mkey: 0x77n },
      info,
    ]);
    // The second and the last have no answer.
    expect(replies.map(({ u8 }) => u8(7))).toEqual([0x77, 0, 0x77, 0x77]);
    expect(replies[2]!.u16(44)).toBe(1);
    expect(bench.device.management.counts.unanswered).toBe(2);
  });
});

describe('tables that a subnet manager writes', () => {
  it('are those by which packets move, up to LinearFDBTop', async () => {
    const bench = new SwitchBench(4);
    const block = new Uint8Array(64).fill(255);
    block.set([3, 4, 1], 10);
    const top = portInfoWith({ 7: 11 });
    await answers(bench, [
      { method: set, attributeId: attribute.linear, modifier: 0, data: block },
      { method: set, attributeId: attribute.switchInfo, data: top },
    ]);
    for (const lid of [10, 11, 12, 2]) bench.ends[1]!.sendAt(bench.nowPs + usPs, lid, 64, lid);
    await bench.runTo(bench.nowPs + 20 * usPs);
    expect(bench.ends.map(({ arrivals }) => arrivals.map(({ psn }) => psn).filter((psn) => psn > 0))).toEqual(
      [[], [], [10], [11]],
    );
    expect(bench.device.dropsOf(2)).toMatchObject({ noRoute: 2 });
  });

  it('have groups of their own, 16 ports to a position', async () => {
    const bench = new SwitchBench(4);
    const masks = new Uint8Array(64);
    masks.set([0x00, 0b11000], 2);
    await answers(bench, [{ method: set, attributeId: attribute.multicast, modifier: 0, data: masks }]);
    bench.ends[0]!.sendAt(bench.nowPs + usPs, 0xc001, 64, 7);
    bench.ends[0]!.sendAt(bench.nowPs + usPs, 0xc002, 64, 8);
    await bench.runTo(bench.nowPs + 20 * usPs);
    const groups = bench.ends.map(({ arrivals }) => arrivals.map(({ psn }) => psn).filter((psn) => psn > 0));
    expect(groups).toEqual([[], [], [7], [7]]);
  });
});

describe('a switch that no embedded subnet manager configures', () => {
  it('IBTA 7.2: has ports in Init, whose data leaves once they are Active', async () => {
    const bench = unconfigured();
    bench.ends[0]!.sendAt(startPs, 3, 64, 5);
    const states = [init, armed, active].map((state) => ({
      method: set,
      attributeId: attribute.portInfo,
      modifier: 3,
      data: portInfoWith({ 32: state }),
    }));
    const replies = await answers(bench, states);
    expect(replies.map(({ u8, status }) => [u8(32) & 0xf, status])).toEqual([
      [init, okay],
      [armed, okay],
      [active, okay],
    ]);
    expect(bench.ends[2]!.arrivals).toEqual([]);
    bench.ends[0]!.sendAt(bench.nowPs + usPs, 3, 64, 6);
    await bench.runTo(bench.nowPs + 20 * usPs);
    expect(bench.ends[2]!.arrivals.map(({ psn }) => psn)).toEqual([6]);
  });

  it('notes links that go down and come up again in PortStateChange, and the port begins again', async () => {
    const bench = unconfigured();
    const clear = { method: set, attributeId: attribute.switchInfo, data: portInfoWith({ 6: 0xbf, 11: 4 }) };
    const [cleared] = await answers(bench, [clear]);
    expect(cleared!.u8(11) & 4).toBe(0);
    bench.ends[3]!.at(bench.nowPs + usPs, () => bench.ends[3]!.port.setEnabled(false));
    const [changed, port] = await answers(bench, [
      { attributeId: attribute.switchInfo },
      { attributeId: attribute.portInfo, modifier: 4 },
    ]);
    expect([changed!.u8(11) & 4, port!.u8(32) & 0xf]).toEqual([4, down]);
  });

  it('disables a port whose physical state a Set disables, and polls again', async () => {
    const bench = unconfigured();
    const portOf = (physicalState: number): Smp => ({
      method: set,
      attributeId: attribute.portInfo,
      modifier: 4,
      data: portInfoWith({ 32: down, 33: physicalState << 4 }),
    });
    const query = { attributeId: attribute.portInfo, modifier: 4 };
    const [, disabled] = await answers(bench, [portOf(3), query]);
    expect([disabled!.u8(32) & 0xf, disabled!.u8(33) >> 4]).toEqual([down, 3]);
    const [, , polling] = await answers(bench, [portOf(2), query, query]);
    expect([polling!.u8(32) & 0xf, polling!.u8(33) >> 4]).toEqual([init, 5]);
  });
});

describe('a directed route through a switch', () => {
  it('reaches the neighbour of its second hop with the way back in it, and returns', async () => {
    const bench = new SwitchBench(4);
    const request = smp({});
    request.set([1, 2], 6);
    request.set([0, 1, 4], 128);
    bench.ends[1]!.sendDatagramAt(startPs, { payload: request });
    await bench.runTo(startPs + 40 * usPs);
    const [arrival] = bench.ends[3]!.arrivals;
    expect([arrival!.payload[6], arrival!.payload[7], arrival!.payload[193]]).toEqual([2, 2, 2]);
    expect([arrival!.datagram!.sourceLid, arrival!.datagram!.destinationLid]).toEqual([0xffff, 0xffff]);
    // The neighbour answers as its own agent would: pointer 2 names the hop by which the answer leaves the switch.
    const response = Uint8Array.from(arrival!.payload);
    response.set([0x80, 0x00, 2], 4);
    response[194] = 1;
    bench.ends[3]!.sendDatagramAt(bench.nowPs, { payload: response });
    await bench.runTo(bench.nowPs + 40 * usPs);
    const [returned] = bench.ends[1]!.arrivals;
    expect([returned!.payload[4], returned!.payload[6]]).toEqual([0x80, 1]);
  });

  it('ends where it names a port without a cable or beyond the last', async () => {
    const bench = new SwitchBench(4);
    const request = smp({});
    request.set([1, 2], 6);
    request.set([0, 1, 9], 128);
    bench.ends[1]!.sendDatagramAt(startPs, { payload: request });
    await bench.runTo(startPs + 40 * usPs);
    expect(bench.device.management.counts).toMatchObject({ taken: 1, sent: 0, noPath: 1 });
  });
});

describe('a management packet by LIDs', () => {
  it('to the own LID is answered to its sender', async () => {
    const [answer] = await ask({ managementClass: lidRouted, attributeId: attribute.nodeInfo });
    expect(answer).toMatchObject({ method: getResponse, status: okay, isBack: false });
    expect(answer!.u8(2)).toBe(2);
  });

  it('to another LID passes like any packet', async () => {
    const bench = new SwitchBench(4);
    const payload = smp({ managementClass: lidRouted });
    bench.ends[1]!.sendDatagramAt(startPs, { payload, sourceLid: 2, destinationLid: 4 });
    await bench.runTo(startPs + 5 * usPs);
    expect(bench.ends[3]!.arrivals).toHaveLength(1);
    expect(bench.device.management.counts.taken).toBe(0);
  });

  it('IBTA 13.5.3.2: is dropped with another class, another QP, or another size', async () => {
    const bench = new SwitchBench(4);
    const [, end] = bench.ends;
    const to = { sourceLid: 2, destinationLid: benchSwitchLid };
    end!.sendDatagramAt(startPs, { payload: smp({ managementClass: 0x04 }), ...to });
    end!.sendDatagramAt(startPs + 40 * usPs, {
      payload: smp({ managementClass: 1 }),
      ...to,
      destinationQpn: 1,
    });
    end!.sendDatagramAt(startPs + 80 * usPs, { payload: new Uint8Array(64), ...to });
    end!.sendDatagramAt(startPs + 120 * usPs, { payload: smp({}), ...to, virtualLane: 0, destinationQpn: 1 });
    await bench.runTo(startPs + 200 * usPs);
    expect(end!.arrivals).toEqual([]);
    expect(bench.device.management.counts).toMatchObject({ taken: 4, malformed: 4 });
  });
});

describe('performance management at QP1', () => {
  /** PortCounters of port 3, as end 1 asks by LIDs on lane 0. */
  const counters = (portSelect: number, attributeId = 0x12, managementClass = 0x04): Uint8Array => {
    const payload = new Uint8Array(256);
    payload.set([1, managementClass, 1, get]);
    viewOf(payload).setUint16(16, attributeId);
    payload[65] = portSelect;
    return payload;
  };
  const route = {
    ...{ virtualLane: 0, sourceLid: 2, destinationLid: benchSwitchLid },
    ...{ sourceQpn: 1, destinationQpn: 1, queueKey: 0x8001_0000 },
  };

  it('IBTA 16.1.3.5: counts what left by a port, relay errors where packets came, and waits for credits', async () => {
    const bench = new SwitchBench(4);
    bench.ends[0]!.sendAt(startPs, 3, 256, 1, 2);
    bench.ends[0]!.sendAt(startPs, 9, 256, 1, 3);
    bench.ends[1]!.sendDatagramAt(startPs + 20 * usPs, { payload: counters(3), ...route });
    bench.ends[1]!.sendDatagramAt(startPs + 60 * usPs, { payload: counters(1), ...route });
    bench.ends[1]!.sendDatagramAt(startPs + 100 * usPs, { payload: counters(3, 0x1d), ...route });
    await bench.runTo(startPs + 200 * usPs);
    const [output, input, extended] = bench.ends[1]!.arrivals.map(({ payload }) =>
      viewOf(Uint8Array.from(payload)),
    );
    // 256 bytes, LRH 8, BTH 12, DETH 8, ICRC 4: 72 dwords.
    expect([output!.getUint32(64 + 24), output!.getUint32(64 + 32)]).toEqual([144, 2]);
    expect([input!.getUint16(64 + 12), input!.getUint32(64 + 36)]).toEqual([3, 5]);
    expect([extended!.getBigUint64(64 + 8), extended!.getBigUint64(64 + 24)]).toEqual([144n, 2n]);
  });

  it('refuses ports, attributes and classes that it does not have', async () => {
    const bench = new SwitchBench(4);
    const payloads = [counters(5), counters(1, 0x99), counters(1, 0x12, 0x06)];
    for (const [index, payload] of payloads.entries())
      bench.ends[1]!.sendDatagramAt(startPs + 40 * index * usPs, { payload, ...route });
    await bench.runTo(startPs + 200 * usPs);
    const statuses = bench.ends[1]!.arrivals.map(({ payload }) => payload[5]);
    expect(statuses).toEqual([badField, badAttribute, badVersion]);
  });

  it('IBTA 10.2.5: drops packets with another Q_Key', async () => {
    const bench = new SwitchBench(4);
    bench.ends[1]!.sendDatagramAt(startPs, { payload: counters(3), ...route, queueKey: 1 });
    await bench.runTo(startPs + 40 * usPs);
    expect(bench.device.management.counts).toMatchObject({ malformed: 1, sent: 0 });
  });
});

describe('management of one instant', () => {
  it('is the same in every order of events', async () => {
    const seen = async (shuffle?: () => number): Promise<unknown> => {
      const bench = new SwitchBench(4, { management: { embedded: undefined } }, shuffle);
      for (const [index, end] of bench.ends.entries()) {
        const modifier = 1 + ((index + 1) % 4);
        const data = portInfoWith({ 32: armed, 38: index });
        end.sendDatagramAt(startPs, {
          payload: smp({ method: set, attributeId: attribute.portInfo, modifier, data }),
        });
        const block = new Uint8Array(64).fill(1 + index);
        end.sendDatagramAt(startPs + 30 * usPs, {
          payload: smp({ method: set, attributeId: attribute.linear, data: block }),
        });
      }
      await bench.runTo(startPs + 200 * usPs);
      return [bench.ends.map(({ arrivals }) => arrivals), bench.device.inspect()];
    };
    await sameInAnyOrder(seen);
  });
});
