import { describe, expect, it } from 'vitest';
import { CommandStatus } from '../../../../abi/command-status.ts';
import { MadClass, MadMethod, mad, SmpAttribute, smp } from '../../../../abi/mad.ts';
import { PortCapability, portInfo } from '../../../../abi/mad-attributes.ts';
import { mcgEntry } from '../../../../abi/mcg.ts';
import { queryPort, setPortInfiniband } from '../../../../abi/ports.ts';
import { diagnosticReport, modStatCfg } from '../../../../abi/static-configuration.ts';
import { broughtUp, must, startFirmware } from '../../testing/bring-up.ts';
import { ControlBench } from '../../testing/control-bench.ts';

const { OK, BAD_OP, BAD_PARAM, BAD_INDEX, BAD_PKT, BAD_SIZE } = CommandStatus;
const smpOf = (fields: Partial<Parameters<typeof smp.encode>[0]>): Uint8Array =>
  smp.encode({
    baseVersion: 1,
    managementClass: MadClass.SUBN_LID_ROUTED,
    classVersion: 1,
    method: MadMethod.GET,
    ...fields,
  });

describe('SET_PORT', () => {
  it('sheet 3.12: takes the MTU, the VL count and the changeable capabilities', () => {
    const bench = broughtUp();
    const inBox = setPortInfiniband.encode({
      changeMtuCap: 1,
      mtuCap: 4,
      changeVlCap: 1,
      vlCount: 4,
      capabilityMask: PortCapability.IS_SM | PortCapability.IS_CM,
    });
    must(bench, 'SET_PORT', { inBox, inputModifier: 1 });
    const info = portInfo.decode(bench.control.ports[0]!.info);
    expect([info.mtuCap, info.vlCap]).toEqual([4, 3]); // 4 VLs are code 3
    expect(info.capabilityMask & PortCapability.IS_SM).not.toBe(0);
    expect(info.capabilityMask & PortCapability.IS_SL_MAPPING).not.toBe(0); // The abilities of the port stay.
  });

  it('sheet 3.3: answers too many VLs with bad size, so that Linux tries fewer', () => {
    const bench = broughtUp({}, { maxVls: 4 });
    const set = (vlCount: number) =>
      bench.command('SET_PORT', {
        inBox: setPortInfiniband.encode({ changeVlCap: 1, vlCount }),
        inputModifier: 1,
      });
    expect([set(8).status, set(4).status]).toEqual([BAD_SIZE, OK]);
  });

  it.each([
    ['an MTU code of 6', 1, { changeMtuCap: 1, mtuCap: 6 }, 0, BAD_PARAM],
    ['a port that is not there', 2, {}, 0, BAD_PARAM],
    ['port 0', 0, {}, 0, BAD_PARAM],
    ['an Ethernet form', 1, {}, 1, BAD_OP],
    ['the beacon', 1, {}, 4, BAD_OP],
  ])('sheet 3.12: refuses %s', (_what, inputModifier, fields, opcodeModifier, status) => {
    const bench = broughtUp();
    const inBox = setPortInfiniband.encode(fields);
    expect(bench.command('SET_PORT', { inBox, inputModifier, opcodeModifier }).status).toBe(status);
  });
});

describe('QUERY_PORT, SENSE_PORT and MOD_STAT_CFG', () => {
  it('sheet 3.13: describe an InfiniBand port before INIT_HCA', () => {
    const bench = new ControlBench({}, { portCount: 2 });
    startFirmware(bench);
    const port = queryPort.decode(must(bench, 'QUERY_PORT', { inputModifier: 2, outBytes: 256 }).outBox);
    expect(port).toMatchObject({
      linkUp: 0,
      supportedTypes: 1,
      maxIbMtu: 5,
      maxIbWidth: 3,
      maxVls: 8,
      logGids: 7,
      logPkeys: 7,
    });
    expect(must(bench, 'SENSE_PORT', { inputModifier: 1 }).out).toBe(1);
    expect(bench.command('QUERY_PORT', { inputModifier: 3, outBytes: 256 }).status).toBe(BAD_PARAM);
    expect(bench.command('SENSE_PORT', { inputModifier: 3 }).status).toBe(BAD_PARAM);
  });

  it('sheet 3.8: accept the smallest page and tell the physical port id', () => {
    const bench = new ControlBench();
    startFirmware(bench);
    must(bench, 'MOD_STAT_CFG', { inBox: modStatCfg.encode({ logPageSizeModify: 1 }) });
    const form = { opcodeModifier: 2, outBytes: 256 };
    const id = modStatCfg.decode(must(bench, 'MOD_STAT_CFG', { ...form, inputModifier: 1 << 8 }).outBox);
    expect([id.portGuidHigh, id.portGuidLow]).toEqual([0x0002_c903, 1]);
    expect(bench.command('MOD_STAT_CFG', { ...form, inputModifier: 2 << 8 }).status).toBe(BAD_PARAM);
    expect(bench.command('MOD_STAT_CFG', { opcodeModifier: 1 }).status).toBe(BAD_OP);
  });
});

describe('MAD_IFC', () => {
  it('sheet 3.14: answers a request in the out box', () => {
    const bench = broughtUp();
    const inBox = smpOf({ attributeId: SmpAttribute.PORT_INFO, attributeModifier: 1, transactionId: 99n });
    const { outBox } = must(bench, 'MAD_IFC', { inBox, inputModifier: 1, opcodeModifier: 3, outBytes: 256 });
    const answer = mad.decode(outBox);
    expect([answer.method, answer.status, answer.transactionId]).toEqual([MadMethod.GET_RESP, 0, 99n]);
  });

  it('sheet 3.2: refuses what is no request, and ports that are not there', () => {
    const bench = broughtUp();
    const send = (inBox: Uint8Array, inputModifier = 1) =>
      bench.command('MAD_IFC', { inBox, inputModifier, outBytes: 256 }).status;
    expect(send(smpOf({ baseVersion: 2 }))).toBe(BAD_PKT);
    expect(send(smpOf({ method: MadMethod.GET_RESP }))).toBe(BAD_PKT);
    expect(send(smpOf({}), 2)).toBe(BAD_PARAM);
  });

  it('sheet 3.14: answers nothing to a repressed trap', () => {
    const bench = broughtUp();
    const inBox = smpOf({ method: MadMethod.TRAP_REPRESS, attributeId: SmpAttribute.NOTICE });
    const { status, outBox } = bench.command('MAD_IFC', { inBox, inputModifier: 1, outBytes: 256 });
    expect([status, outBox.every((byte) => byte === 0)]).toEqual([OK, true]);
  });

  it('sheet 3.19: returns the node description that SET_NODE gave', () => {
    const bench = broughtUp();
    const description = new Uint8Array(64).fill(0x41);
    must(bench, 'SET_NODE', { inBox: description, inputModifier: 1 });
    const inBox = smpOf({ attributeId: SmpAttribute.NODE_DESC });
    const { outBox } = must(bench, 'MAD_IFC', { inBox, inputModifier: 1, outBytes: 256 });
    expect(outBox.subarray(64, 128)).toEqual(description);
  });
});

describe('multicast and diagnostics', () => {
  it('sheet 3.18: keep groups where software put them, and give empty ones else', () => {
    const bench = broughtUp();
    const mgid = Uint8Array.from({ length: 16 }, (_, at) => at);
    const hash = must(bench, 'MGID_HASH', { inBox: mgid }).out;
    expect(hash).toBeLessThan(2 ** 12); // the hash part of the profile
    expect(must(bench, 'MGID_HASH', { inBox: mgid }).out).toBe(hash);
    const inBox = mcgEntry.encode({ memberCount: 1, mgid, members: [{ qpn: 0x205 }] });
    must(bench, 'WRITE_MCG', { inBox, inputModifier: hash });
    expect(must(bench, 'READ_MCG', { inputModifier: hash, outBytes: 1024 }).outBox).toEqual(inBox);
    const empty = must(bench, 'READ_MCG', { inputModifier: hash ^ 1, outBytes: 1024 }).outBox;
    expect(mcgEntry.decode(empty).memberCount).toBe(0);
  });

  it('refuse entries outside the table, too many members and unknown forms', () => {
    const bench = broughtUp();
    const inBox = mcgEntry.encode({ memberCount: 249 });
    expect(bench.command('READ_MCG', { inputModifier: 2 ** 13 }).status).toBe(BAD_INDEX);
    expect(bench.command('WRITE_MCG', { inBox, inputModifier: 0 }).status).toBe(BAD_PARAM);
    expect(bench.command('WRITE_MCG', { inBox, opcodeModifier: 2 }).status).toBe(BAD_OP);
  });

  it('sheet 3.19: report what has been counted, for the device or a port', () => {
    const bench = broughtUp();
    const form = { opcodeModifier: 2, outBytes: diagnosticReport.sizeBytes };
    expect(must(bench, 'DIAG_RPRT', form).outBox.every((byte) => byte === 0)).toBe(true);
    bench.dataPath.diagnostics.sqTimeout = 0x01020304;
    bench.dataPath.diagnostics.rqOutOfSequence = 5;
    for (const inputModifier of [0, 1]) {
      const { outBox } = must(bench, 'DIAG_RPRT', { ...form, inputModifier });
      // Linux, mlx4_ib: sq_num_to is at 0x134, rq_num_oos at 0x100.
      expect([...outBox.subarray(0x134, 0x138)]).toEqual([1, 2, 3, 4]);
      expect([...outBox.subarray(0x100, 0x104)]).toEqual([0, 0, 0, 5]);
    }
    expect(bench.command('DIAG_RPRT', { ...form, inputModifier: 2 }).status).toBe(BAD_PARAM);
    expect(bench.command('DIAG_RPRT', { ...form, opcodeModifier: 0 }).status).toBe(BAD_OP);
    expect(bench.command('HW_HEALTH_CHECK').status).toBe(OK);
  });
});
