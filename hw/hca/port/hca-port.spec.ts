import { describe, expect, it } from 'vitest';
import {
  EventType,
  eqe,
  PortChange,
  PortInfoChange,
  PortManagementChange,
  portChangeEqe,
  portInfoChangeEqe,
} from '../../../abi/eqe.ts';
import { PortPhysicalState, PortState, portInfo } from '../../../abi/mad-attributes.ts';
import { queryPort } from '../../../abi/ports.ts';
import { viewOf } from '../../../base/index.ts';
import { vlCapOf } from '../../management/index.ts';
import { broughtUp, bufferAddress, createEq, must } from '../testing/bring-up.ts';
import type { ControlBench } from '../testing/control-bench.ts';

/** A device whose port events go to EQ 4. */
function withEvents(...setup: Parameters<typeof broughtUp>): ControlBench {
  const bench = broughtUp(...setup);
  const eqn = createEq(bench, 0);
  const inParam = 2 ** EventType.PORT_CHANGE + 2 ** EventType.PORT_MNG_CHG_EVENT;
  must(bench, 'MAP_EQ', { inParam, inputModifier: eqn });
  return bench;
}

const infoOf = (bench: ControlBench) => portInfo.decode(bench.control.ports[0]!.info);
const eqeAt = (bench: ControlBench, index: number): Uint8Array =>
  bench.memory.read(bufferAddress(0) + index * 32, 32);

describe('a port', () => {
  it('sheet 3.11: is down and disabled before INIT_PORT, although the cable is there', () => {
    const bench = withEvents();
    bench.cable.set(true);
    bench.run();
    expect(infoOf(bench)).toMatchObject({
      portState: PortState.DOWN,
      portPhysicalState: PortPhysicalState.DISABLED,
      lid: 0,
    });
  });

  it('sheet 3.11: polls until a peer is there', () => {
    const bench = withEvents();
    must(bench, 'INIT_PORT', { inputModifier: 1 });
    bench.run();
    expect(infoOf(bench)).toMatchObject({
      portState: PortState.DOWN,
      portPhysicalState: PortPhysicalState.POLLING,
    });
  });

  it('sheet 7.7: trains, is given its addresses by the embedded subnet manager, and becomes active', () => {
    const bench = withEvents();
    must(bench, 'INIT_PORT', { inputModifier: 1 });
    bench.cable.set(true);
    bench.run(1100); // training takes 1000 cycles here
    expect(infoOf(bench)).toMatchObject({
      portState: PortState.INIT,
      portPhysicalState: PortPhysicalState.LINK_UP,
    });
    expect([bench.dataPath.calls, bench.cable.isOpen]).toEqual([[], false]);
    bench.run();
    expect(infoOf(bench)).toMatchObject({ portState: PortState.ACTIVE, lid: 1, masterSmLid: 0xbfff });
    expect([bench.dataPath.calls, bench.cable.isOpen]).toEqual([['portUp'], true]);
    const answer = must(bench, 'QUERY_PORT', { inputModifier: 1, outBytes: 256 }).outBox;
    expect(queryPort.decode(answer).linkUp).toBe(1);
  });

  it('sheet 7.7: reports its addresses and that it is active', () => {
    const bench = withEvents();
    must(bench, 'INIT_PORT', { inputModifier: 1 });
    bench.cable.set(true);
    bench.run();
    expect(portInfoChangeEqe.decode(eqeAt(bench, 0))).toMatchObject({
      type: EventType.PORT_MNG_CHG_EVENT,
      subtype: PortManagementChange.PORT_INFO,
      port: 1,
      lid: 1,
      smLid: 0xbfff,
      changed: PortInfoChange.LID | PortInfoChange.SM_LID,
      gidPrefix: 0xfe80_0000_0000_0000n,
    });
    expect(portChangeEqe.decode(eqeAt(bench, 1))).toMatchObject({
      type: EventType.PORT_CHANGE,
      subtype: PortChange.ACTIVE,
      port: 1,
    });
    expect(bench.control.events.writtenCount).toBe(2);
  });

  it('sheet 3.11: goes down with the cable, reports it once, and comes back with it', () => {
    const bench = withEvents();
    must(bench, 'INIT_PORT', { inputModifier: 1 });
    bench.cable.set(true);
    bench.run();
    bench.cable.set(false);
    bench.run();
    expect(infoOf(bench)).toMatchObject({
      portState: PortState.DOWN,
      portPhysicalState: PortPhysicalState.POLLING,
    });
    expect(portChangeEqe.decode(eqeAt(bench, 2))).toMatchObject({ subtype: PortChange.DOWN, port: 1 });
    bench.cable.set(true);
    bench.run();
    expect(bench.dataPath.calls).toEqual(['portUp', 'portDown', 'portUp']);
  });

  it('sheet 3.11: reports nothing when the cable goes before the port was active', () => {
    const bench = withEvents({ embeddedSubnetManager: false });
    must(bench, 'INIT_PORT', { inputModifier: 1 });
    bench.cable.set(true);
    bench.run();
    expect(infoOf(bench).portState).toBe(PortState.INIT);
    bench.cable.set(false);
    bench.run();
    expect([infoOf(bench).portState, bench.control.events.writtenCount]).toEqual([PortState.DOWN, 0]);
  });

  it('sheet 3.11: closes from anywhere, and twice', () => {
    const bench = withEvents();
    must(bench, 'INIT_PORT', { inputModifier: 1 });
    must(bench, 'INIT_PORT', { inputModifier: 1 });
    bench.cable.set(true);
    bench.run();
    must(bench, 'CLOSE_PORT', { inputModifier: 1 });
    must(bench, 'CLOSE_PORT', { inputModifier: 1 });
    bench.run();
    expect(infoOf(bench)).toMatchObject({
      portState: PortState.DOWN,
      portPhysicalState: PortPhysicalState.DISABLED,
    });
    expect(eqe.fields.subtype.get(viewOf(eqeAt(bench, 2)), 0)).toBe(PortChange.DOWN);
    expect(bench.control.events.writtenCount).toBe(3);
  });

  it('keeps events back while the event fifo is full', () => {
    const bench = withEvents({ eventFifoDepth: 4 });
    must(bench, 'INIT_PORT', { inputModifier: 1 });
    bench.cable.set(true);
    bench.run(1990); // just before the subnet manager acts, at about 2000
    while (bench.control.events.canPost()) bench.control.events.postCompletion(4, 128, bench.cycle);
    bench.run();
    expect([4, 5].map((index) => eqe.fields.type.get(viewOf(eqeAt(bench, index)), 0))).toEqual([
      EventType.PORT_MNG_CHG_EVENT,
      EventType.PORT_CHANGE,
    ]);
  });

  it('takes the LID of its parameter', () => {
    const bench = withEvents({ portLid: 0x123, subnetManagerLid: 9 }, {}, [0]);
    must(bench, 'INIT_PORT', { inputModifier: 1 });
    bench.cable.set(true);
    bench.run();
    expect(infoOf(bench)).toMatchObject({ lid: 0x123, masterSmLid: 9 });
  });

  it('IBTA 14.2.5.6: shares its LID with no other port of the subnet', () => {
    expect(() => withEvents({ portLid: 0x123 })).toThrow(
      /portLid is 291, expected 0: 2 ports cannot have one LID/,
    );
    expect(() => withEvents({ subnetManagerLid: 2 })).toThrow(
      /subnetManagerLid is 2, expected .*: 1, 2 are taken/,
    );
  });

  it('IBTA 14.2.5.6: counts key violations up to the largest count', () => {
    const port = withEvents().control.ports[0]!;
    for (let violation = 0; violation < 70_000; violation++) port.countPkeyViolation();
    port.countQkeyViolation();
    expect(portInfo.decode(port.info)).toMatchObject({ pkeyViolations: 0xffff, qkeyViolations: 1 });
  });

  it('IBTA 14.2.5.6: codes its VLs', () => {
    expect([1, 2, 3, 4, 8, 15].map(vlCapOf)).toEqual([1, 2, 3, 3, 4, 5]);
  });
});
