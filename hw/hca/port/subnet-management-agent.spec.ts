import { beforeEach, describe, expect, it } from 'vitest';
import { EventType, PortManagementChange, tableChangeEqe } from '../../../abi/eqe.ts';
import { MadClass, MadMethod, MadStatus, SmpAttribute, smp } from '../../../abi/mad.ts';
import { guidInfo, nodeInfo, PortState, pkeyTable, portInfo } from '../../../abi/mad-attributes.ts';
import type { Initial } from '../../../base/index.ts';
import { broughtUp, bufferAddress, createEq, must } from '../testing/bring-up.ts';
import type { ControlBench } from '../testing/control-bench.ts';
import { SILENT } from './subnet-management-agent.ts';

let bench: ControlBench;

beforeEach(() => {
  bench = broughtUp({ embeddedSubnetManager: false });
  const eqn = createEq(bench, 0);
  const inParam = 2 ** EventType.PORT_CHANGE + 2 ** EventType.PORT_MNG_CHG_EVENT;
  must(bench, 'MAP_EQ', { inParam, inputModifier: eqn });
  must(bench, 'INIT_PORT', { inputModifier: 1 });
  bench.cable.set(true);
  bench.run();
});

function exchange(fields: Initial<typeof smp>, checksMkey = false) {
  const request = smp.encode({
    baseVersion: 1,
    managementClass: MadClass.SUBN_LID_ROUTED,
    classVersion: 1,
    ...fields,
  });
  const response = bench.commandSet.state.parts.agents.handle(request, {
    portNumber: 1,
    checksMkey,
    cycle: bench.cycle,
  });
  bench.run();
  return response;
}

/** The answer's status and attribute. */
function answerOf(fields: Initial<typeof smp>): { status: number; data: Uint8Array } {
  const response = exchange(fields);
  if (!(response instanceof Uint8Array)) throw new Error(`no answer: ${response}`);
  const decoded = smp.decode(response);
  expect(decoded.method).toBe(MadMethod.GET_RESP);
  return { status: decoded.status, data: decoded.data };
}

const get = (attributeId: number, attributeModifier = 0) =>
  answerOf({ method: MadMethod.GET, attributeId, attributeModifier });
const set = (attributeId: number, attributeModifier: number, data: Uint8Array) =>
  answerOf({ method: MadMethod.SET, attributeId, attributeModifier, data });
const setPortInfo = (fields: Initial<typeof portInfo>) =>
  set(SmpAttribute.PORT_INFO, 1, portInfo.encode(fields));
const current = () => portInfo.decode(get(SmpAttribute.PORT_INFO, 1).data);

describe('Get', () => {
  it('sheet 7.6: reports what the node is', () => {
    expect(nodeInfo.decode(get(SmpAttribute.NODE_INFO).data)).toMatchObject({
      nodeType: 1,
      ports: 1,
      nodeGuid: 0x0002_c903_0000_0000n,
      portGuid: 0x0002_c903_0000_0001n,
      partitionCap: 128,
      vendorId: 0x2c9,
    });
    const text = new TextDecoder().decode(get(SmpAttribute.NODE_DESC).data);
    expect(text).toMatch(/^hca-emulator node 0\0/);
  });

  it('sheet 7.6: reports the port by number, by 0, and not by a number without a port', () => {
    expect(get(SmpAttribute.PORT_INFO, 1).data).toEqual(get(SmpAttribute.PORT_INFO, 0).data);
    expect(get(SmpAttribute.PORT_INFO, 2).status).toBe(MadStatus.INVALID_FIELD);
    expect(current()).toMatchObject({ portState: PortState.INIT, linkWidthActive: 2, linkSpeedActive: 4 });
  });

  it('sheet 7.6: reports GUIDs in blocks of 8 and P_Keys in blocks of 32, to the end of the tables', () => {
    expect(guidInfo.decode(get(SmpAttribute.GUID_INFO, 0).data).guids[0]).toBe(0x0002_c903_0000_0001n);
    expect(pkeyTable.decode(get(SmpAttribute.PKEY_TABLE, 0).data).pkeys.slice(0, 2)).toEqual([0xffff, 0]);
    expect(get(SmpAttribute.GUID_INFO, 15).status).toBe(MadStatus.OK);
    expect(get(SmpAttribute.GUID_INFO, 16).status).toBe(MadStatus.INVALID_FIELD);
    expect(get(SmpAttribute.PKEY_TABLE, 3).status).toBe(MadStatus.OK);
    expect(get(SmpAttribute.PKEY_TABLE, 4).status).toBe(MadStatus.INVALID_FIELD);
  });

  it('sheet 7.6: answers the vendor attribute that port queries at QDR need', () => {
    expect(get(SmpAttribute.MLX_EXTENDED_PORT_INFO, 1).status).toBe(MadStatus.OK);
    expect(get(SmpAttribute.SL_TO_VL_TABLE).status).toBe(MadStatus.OK);
  });
});

/** IBA 14.2.5.9: blocks 1 and 2 of the modifier's upper half are the low-priority table, 3 and 4 the high-priority one. */
describe('the VL arbitration tables', () => {
  const table = (block: number) => get(SmpAttribute.VL_ARB_TABLE, (block << 16) | 1);
  const entries = (...pairs: [lane: number, weight: number][]): Uint8Array => {
    const data = new Uint8Array(64);
    pairs.forEach((pair, index) => {
      data.set(pair, 2 * index);
    });
    return data;
  };

  it('IBTA 14.2.5.9: are there, as PortInfo promises', () => {
    const { vlArbitrationHighCap, vlArbitrationLowCap } = current();
    expect([vlArbitrationHighCap, vlArbitrationLowCap]).toEqual([8, 8]);
    for (const block of [1, 2, 3, 4]) expect(table(block).status).toBe(MadStatus.OK);
    for (const block of [0, 5]) expect(table(block).status).toBe(MadStatus.INVALID_FIELD);
  });

  it('IBTA 14.2.5.9: keep what is set, up to their capacity, each its own', () => {
    const before = table(3).data;
    const nine = entries([0, 10], [1, 20], [2, 30], [3, 40], [4, 50], [5, 60], [6, 70], [7, 80], [0, 90]);
    const eight = entries([0, 10], [1, 20], [2, 30], [3, 40], [4, 50], [5, 60], [6, 70], [7, 80]);
    expect(set(SmpAttribute.VL_ARB_TABLE, (1 << 16) | 1, nine)).toEqual({
      status: MadStatus.OK,
      data: eight,
    });
    expect(table(1).data).toEqual(eight);
    expect(table(3).data).toEqual(before);
    expect(set(SmpAttribute.VL_ARB_TABLE, (2 << 16) | 1, nine).data).toEqual(entries());
    expect(set(SmpAttribute.VL_ARB_TABLE, 5 << 16, nine).status).toBe(MadStatus.INVALID_FIELD);
  });

  it("are a new device's behind a reset", () => {
    const before = [1, 3].map((block) => table(block).data);
    for (const block of [1, 3]) set(SmpAttribute.VL_ARB_TABLE, block << 16, entries([7, 255]));
    bench.control.ports[0]!.reset();
    expect([1, 3].map((block) => table(block).data)).toEqual(before);
  });
});

describe('what is not supported', () => {
  it.each([
    [
      'an unknown attribute',
      { method: MadMethod.GET, attributeId: 0x0031 },
      MadStatus.UNSUPPORTED_METHOD_ATTRIBUTE,
    ],
    [
      'setting what cannot be set',
      { method: MadMethod.SET, attributeId: SmpAttribute.NODE_INFO },
      MadStatus.UNSUPPORTED_METHOD_ATTRIBUTE,
    ],
    [
      'an unknown method',
      { method: 0x12, attributeId: SmpAttribute.NODE_INFO },
      MadStatus.UNSUPPORTED_METHOD,
    ],
    ['another class version', { method: MadMethod.GET, classVersion: 2 }, MadStatus.UNSUPPORTED_VERSION],
    [
      'a class without an agent',
      { method: MadMethod.GET, managementClass: MadClass.VENDOR_9 },
      MadStatus.UNSUPPORTED_VERSION,
    ],
    [
      'an unknown counter set',
      { method: MadMethod.GET, managementClass: MadClass.PERF_MGMT, attributeId: 0x77 },
      MadStatus.UNSUPPORTED_METHOD_ATTRIBUTE,
    ],
  ])('IBTA 13.4.7: answers %s with its MAD status', (_what, fields, status) => {
    expect(answerOf(fields).status).toBe(status);
  });

  it('IBTA 13.4.8.1: answers the performance class info that the kernel asks for', () => {
    const answer = answerOf({ method: MadMethod.GET, managementClass: MadClass.PERF_MGMT, attributeId: 1 });
    expect(answer.status).toBe(MadStatus.OK);
  });
});

describe('Set', () => {
  it('sheet 7.7: brings the port up as a subnet manager does, and notifies software', () => {
    expect(
      setPortInfo({ lid: 7, masterSmLid: 3, gidPrefix: 0xfe80_0000_0000_0000n, portState: PortState.ARMED })
        .status,
    ).toBe(0);
    expect(current()).toMatchObject({ portState: PortState.ARMED, lid: 7, masterSmLid: 3 });
    const active = setPortInfo({
      lid: 7,
      masterSmLid: 3,
      gidPrefix: 0xfe80_0000_0000_0000n,
      portState: PortState.ACTIVE,
    });
    expect(portInfo.decode(active.data).portState).toBe(PortState.ACTIVE);
    expect(bench.dataPath.calls).toEqual(['portUp']);
    expect(bench.control.events.writtenCount).toBe(2); // addresses changed, then port active
  });

  it.each([
    ['from Init to Active', { lid: 7, portState: PortState.ACTIVE }],
    ['to Armed without a LID', { lid: 0, portState: PortState.ARMED }],
    ['a multicast LID', { lid: 0xc000 }],
    ['an MTU beyond the port', { lid: 7, neighborMtu: 6 }],
  ])('IBTA 14.2.5.6: refuses %s and changes nothing', (_what, fields) => {
    const before = current();
    expect(setPortInfo(fields).status).toBe(MadStatus.INVALID_FIELD);
    expect(current()).toEqual(before);
    expect(bench.control.events.writtenCount).toBe(0);
  });

  it('IBTA 14.2.5.6: takes the port down, from where it trains again', () => {
    setPortInfo({ lid: 7, portState: PortState.ARMED });
    setPortInfo({ lid: 7, portState: PortState.ACTIVE });
    setPortInfo({ lid: 7, portState: PortState.DOWN });
    expect(bench.dataPath.calls).toEqual(['portUp', 'portDown']);
    expect(current().portState).toBe(PortState.INIT);
  });

  it('sheet 7.7: changes P_Keys and GUIDs, but not the port GUID, and names the changed entries', () => {
    const pkeys = [0xffff, 0x8001];
    expect(set(SmpAttribute.PKEY_TABLE, 0, pkeyTable.encode({ pkeys })).status).toBe(MadStatus.OK);
    set(SmpAttribute.GUID_INFO, 0, guidInfo.encode({ guids: [99n, 0n, 77n] }));
    expect(guidInfo.decode(get(SmpAttribute.GUID_INFO, 0).data).guids.slice(0, 3)).toEqual([
      0x0002_c903_0000_0001n,
      0n,
      77n,
    ]);
    const eqes = [0, 1].map((index) =>
      tableChangeEqe.decode(bench.memory.read(bufferAddress(0) + index * 32, 32)),
    );
    expect(eqes[0]).toMatchObject({ subtype: PortManagementChange.PKEY_TABLE, block: 0, entryMask: 2 });
    expect(eqes[1]).toMatchObject({ subtype: PortManagementChange.GUID_INFO, block: 0, entryMask: 4 });
  });

  it('IBTA 14.2.4: drops requests with the wrong M_Key when it is checked', () => {
    setPortInfo({ lid: 7, mkey: 0x1234n });
    const query = { method: MadMethod.GET, attributeId: SmpAttribute.NODE_INFO };
    expect(exchange(query, true)).toBe(SILENT);
    expect(exchange({ ...query, mkey: 0x1234n }, true)).toBeInstanceOf(Uint8Array);
    expect(exchange(query, false)).toBeInstanceOf(Uint8Array);
  });
});
