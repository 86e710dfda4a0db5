/**
 * Every declared parameter at both ends of its range, and at each of its choices: a machine is built, and carries a short
 * exchange whose statistics balance; or the configuration rejects the value and names the parameter; or software of the machine
 * fails with the error that it would have on such a computer. All of them with HCA_TEST_ALL=1, and every fourth otherwise.
 */
import { describe, expect, it, vi } from 'vitest';
import { ConfigurationError, type Parameter } from '../base/index.ts';
import { Machine } from '../machine/machine.ts';
import { type ParameterValue, type ParameterValues, parametersByPath } from '../machine/profile/index.ts';
import { isAll } from './extent.ts';
import { programOf, programsOf } from './machines.ts';
import type { IwarpFound } from './programs/iwarp.ts';

vi.setConfig({ testTimeout: 300_000 });

const valuesOf = (parameter: Parameter): readonly ParameterValue[] => {
  if (parameter.kind === 'number') return [...new Set([parameter.min, parameter.max])];
  return parameter.kind === 'flag' ? [false, true] : parameter.choices;
};

/** Other values that a value needs to be usable, by path or by path and value. */
const beside: Readonly<Record<string, ParameterValues>> = {
  'machine.nicDriver': { 'machine.adapter': 'nic' },
  'host.memory.reservedKib': { 'host.memory.sizeMib': 512 },
  'host.paging.minFreeKib': { 'host.memory.sizeMib': 2048 },
  'pcie.link.maxPayloadBytes=128': { 'pcie.enumeration.maxPayloadBytes': 128 },
  'pcie.link.maxPayloadBytes=4096': { 'pcie.endpointPort.postedData': 2047 },
  'pcie.enumeration.maxPayloadBytes=4096': { 'pcie.link.maxPayloadBytes': 4096 },
  'pcie.function.bar2Bytes': { 'hca.capability.logUarAreaMib': 0 },
  'hca.capability.logUarAreaMib=6': { 'pcie.function.bar2Bytes': 2 ** 26 },
  'hca.capability.logBlueFlameRegisterBytes=12': { 'hca.capability.logBlueFlameRegistersPerPage': 0 },
  'hca.capability.logBlueFlameRegistersPerPage=5': { 'hca.capability.logBlueFlameRegisterBytes': 7 },
  'hca.capability.logMaxMpts=8': { 'hca.capability.logReservedMpts': 0 },
  'hca.capability.linkLayer=ethernet': { 'hca.capability.roce': 'v2' },
  'hca.capability.roce=v1': { 'hca.capability.linkLayer': 'ethernet' },
  'hca.capability.roce=v2': { 'hca.capability.linkLayer': 'ethernet' },
  'hca.capability.firmwarePages': { 'host.memory.sizeMib': 512 },
  'hca.capability.logAuxPageRatio': { 'host.memory.sizeMib': 512 },
  'driver.completionEqEntries': { 'host.memory.sizeMib': 512, 'driver.completionVectorsMax': 1 },
  'driver.asyncEqEntries': { 'host.memory.sizeMib': 512 },
  'hca.control.subnetManagerLid=1': { 'hca.control.embeddedSubnetManager': true },
  'hca.iwarp.retransmitInitialUs=60000000': { 'hca.iwarp.retransmitMaxUs': 60_000_000 },
  'hca.iwarp.retransmitMaxUs=1000': {
    'hca.iwarp.retransmitMinUs': 1000,
    'hca.iwarp.retransmitInitialUs': 1000,
  },
  'hca.capability.transport=ibta': { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.roce': 'v2' },
  'nic.receiveBufferKib': { 'nic.transmitBufferKib': 16 },
  'nic.transmitBufferKib': { 'nic.receiveBufferKib': 16 },
  'ethernet.mtuBytes=46': { 'net.driver.mtu': 576 },
  'net.driver.buffersMax=16': { 'net.driver.receiveRing': 8 },
  'net.driver.mtu=9000': { 'ethernet.mtuBytes': 9000 },
};

/** Software of the machine that fails as it would on such a computer, and its message. */
const given: Readonly<Record<string, RegExp>> = {
  'pcie.function.vendorId': /ENODEV: vendor id is/,
  'nic.function.vendorId': /ENODEV: device and vendor id are/,
  'nic.function.deviceId': /ENODEV: device and vendor id are/,
  'nic.function.msixVectorCount=1': /ENODEV: interrupt vectors: fewer than 2/,
  'nic.resetCycles=1073741824': /EIO: the NIC does not come out of reset/,
  'ethernet.lossPerMillion=1000000': /ETIMEDOUT: the connection did not come up/,
  'ethernet.corruptionPerMillion=1000000': /ETIMEDOUT: the connection did not come up/,
  'net.stack.socketsMax=1': /EMFILE: the process has 1 sockets/,
  'driver.commandLimitUs=1': /ETIMEDOUT: QUERY_FW/,
  'hca.control.embeddedSubnetManager=false': /port 1 is not active/,
};

/** Parameters that only a machine of iWARP reads: it is the one that they are tried on. */
const ofIwarp = /^(hca\.iwarp\.|driver\.(mpa|tcp)|hca\.capability\.(transport|logMaxTcpConnections)$)/;
const iwarpMachine = { 'hca.capability.linkLayer': 'ethernet', 'hca.capability.transport': 'iwarp' };
/** Around the border of a segment, and several of them. */
const iwarpSizes = { sizes: [0, 1, 1436, 20_000] };

/** Result of a program: one over iWARP reports whether bytes are right, the others report errors. */
type Found = IwarpFound | readonly string[] | undefined;
const wrongOf = (found: Found): readonly string[] => {
  if (found === undefined || !('read' in found)) return found ?? [];
  const { read, written, received } = found;
  return [...read, ...written, ...received].every((isRight) => isRight) ? [] : ['wrong bytes'];
};

const ofNic = /^(nic|net|ethernet|systemDma)\./;
const settings = [...parametersByPath].flatMap(([path, parameter]) =>
  valuesOf(parameter).map((value) => ({ path, value })),
);
const played = isAll ? settings : settings.filter((_, at) => at % 4 === 0);

/** @returns the error */
async function play(path: string, value: ParameterValue): Promise<readonly string[]> {
  const adapter =
    path === 'machine.adapter' ? value : ofNic.test(path) || path === 'machine.nicDriver' ? 'nic' : 'hca';
  const with_ = { ...beside[path], ...beside[`${path}=${value}`] };
  const isIwarp = ofIwarp.test(path);
  const transport = isIwarp ? iwarpMachine : {};
  const set = {
    'host.memory.sizeMib': 64,
    'machine.adapter': adapter,
    ...transport,
    ...with_,
    [path]: value,
  };
  const answer = given[`${path}=${value}`] ?? given[path];
  try {
    await using machine = await Machine.create({ set, stepLimit: 20_000_000 });
    const hasStack = adapter === 'nic' && set['machine.nicDriver' as never] !== 'none';
    const stream = { bytes: 3000, port: 80, callBytes: 3000, from: 0 };
    const programs = isIwarp
      ? programsOf('iwarp', 'everyVerb', iwarpSizes)
      : adapter === 'hca'
        ? [programOf('short-exchange', 'asker', 0), programOf('short-exchange', 'answerer', 1)]
        : programsOf('traditional', 'stream', stream);
    for (const program of hasStack || adapter === 'hca' ? programs : []) await machine.load(program);
    await machine.run();
    const results = await machine.results<Found[]>();
    const { checks } = await machine.report();
    if (answer !== undefined) return ['software goes on, which is expected to give up'];
    const wrong = adapter === 'hca' ? results.flatMap(wrongOf) : [];
    return checks.balanced ? wrong : [...wrong, JSON.stringify(checks)];
  } catch (error) {
    const { message } = error as Error;
    if (answer?.test(message) === true) return [];
    const name = path.split('.').at(-1)!;
    return error instanceof ConfigurationError && message.includes(name) ? [] : [message];
  }
}

describe('the declared ranges of parameters', () => {
  it('are accepted by the model at both ends, or rejected by name', async () => {
    const wrong: string[] = [];
    for (const { path, value } of played)
      for (const text of await play(path, value)) wrong.push(`${path}=${value}: ${text}`);
    expect(wrong).toEqual([]);
    expect(settings.length).toBeGreaterThan(900);
  });

  it.each([
    // Each was accepted, or failed without a message, before this test.
    [{ 'pcie.rootComplex.messageWindowAddress': 0 }, 'messageWindowAddress'],
    [{ 'hca.capability.logReservedEqs': 9 }, 'logReservedEqs'],
    [{ 'host.cost.pollEmpty': 0 }, 'pollEmpty'],
    [{ 'hca.control.portLid': 1 }, 'portLid'],
    [{ 'pcie.function.bar0Bytes': 2 ** 19 }, 'bar0Bytes'],
    [{ 'hca.capability.logMaxQpWqes': 0 }, 'logMaxQpWqes'],
    [{ 'hca.capability.logMaxCqEntries': 0 }, 'logMaxCqEntries'],
    [{ 'hca.capability.logUarAreaMib': 4 }, 'logUarAreaMib'],
    [{ 'hca.capability.logBlueFlameRegisterBytes': 12 }, 'logBlueFlameRegisterBytes'],
    [{ 'hca.capability.logMaxEqs': 3, 'hca.capability.reservedUars': 2 }, 'logMaxEqs'],
    [{ 'hca.capability.logMaxQps': 10, 'hca.capability.logReservedQps': 10 }, 'logMaxQps'],
    [{ 'hca.capability.logMaxEqEntries': 5 }, 'logMaxEqEntries'],
    [{ 'pcie.enumeration.highWindowMib': 8 }, 'highWindowMib'],
    [
      { ...iwarpMachine, 'hca.iwarp.retransmitMinUs': 2000, 'hca.iwarp.retransmitMaxUs': 1999 },
      'retransmitMinUs',
    ],
    [{ ...iwarpMachine, 'hca.iwarp.retransmitMaxUs': 999_999 }, 'retransmitInitialUs'],
    [{ 'pcie.function.vpdOffset': 64 }, 'vpdOffset'],
    [{ 'machine.adapter': 'nic', 'net.driver.buffersMax': 512 }, 'buffersMax'],
    [{ 'host.memory.sizeMib': 64, 'host.memory.reservedKib': 65_536 }, 'reservedKib'],
  ])('reject %j by the name of %s', async (set, name) => {
    await expect(Machine.create({ set })).rejects.toThrow(ConfigurationError);
    await expect(Machine.create({ set })).rejects.toThrow(name);
  });
});

describe('BlueFlame', () => {
  it.each([
    // BAR2 in bytes, log2 of the UAR area in MiB, log2 of a register, registers per page: whether BlueFlame exists.
    [2 ** 23, 2, 9, 3, true],
    [2 ** 22, 2, 9, 3, false],
    [2 ** 23, 3, 9, 3, false],
    [2 ** 20, 0, 9, 3, false],
    [2 ** 21, 0, 9, 3, true],
    [2 ** 26, 2, 12, 0, true],
    [2 ** 23, 2, 7, 5, true],
    [2 ** 23, 2, 8, 3, true],
  ])('of BAR2 with %i bytes, 2^%i MiB of UARs, registers of 2^%i bytes, 2^%i a page: %s', async (...row) => {
    const [bar2Bytes, logUarAreaMib, logBlueFlameRegisterBytes, logBlueFlameRegistersPerPage, hasBlueFlame] =
      row;
    const set = {
      'host.memory.sizeMib': 64,
      'pcie.function.bar2Bytes': bar2Bytes,
      'hca.capability.logUarAreaMib': logUarAreaMib,
      'hca.capability.logBlueFlameRegisterBytes': logBlueFlameRegisterBytes,
      'hca.capability.logBlueFlameRegistersPerPage': logBlueFlameRegistersPerPage,
    };
    await using machine = await Machine.create({ set });
    await machine.load(programOf('short-exchange', 'inlineAsker', 0));
    await machine.load(programOf('short-exchange', 'answerer', 1));
    await machine.run();
    expect(await machine.results()).toEqual([[], []]);
    const { checks, nodes } = await machine.report();
    expect(checks.balanced).toBe(true);
    const { send, blueFlame } = nodes[0]!.hca!.doorbells as unknown as Record<string, number>;
    // The WRITE is inline, and fits any register except the smallest; the READ is short.
    expect(blueFlame! > 0).toBe(hasBlueFlame);
    expect(send! + blueFlame!).toBeGreaterThanOrEqual(3);
  });
});
