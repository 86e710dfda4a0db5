import { describe, expect, it } from 'vitest';
import { defaultsOf } from '../../../base/parameter.ts';
import { RecordingTarget } from '../function/function-bench.ts';
import { functionParameters } from '../function/function-parameters.ts';
import { PcieFunction } from '../function/pcie-function.ts';
import { memoryWrite } from '../link/link-bench.ts';
import { POSTED } from '../tlp/tlp.ts';
import { type ConfigAccess, enumerateFunction, enumerationParameters } from './enumerate.ts';
import { rootComplexBench } from './root-complex-bench.ts';

const MESSAGE_ADDRESS = 0xfee0_0000;

/** A host with its root complex at one end of the link, the function at the other. */
function machine() {
  const bench = rootComplexBench();
  const { device, deviceLp, rootComplex, hostLp } = bench;
  const target = new RecordingTarget();
  const domain = deviceLp.addClockDomain(427);
  const fn = new PcieFunction({
    process: deviceLp,
    domain,
    port: device,
    config: defaultsOf(functionParameters),
    link: bench.link,
    messageTrafficClass: 14,
  });
  const data = new DataView(new ArrayBuffer(4));
  fn.connect({
    target,
    reads: { pendingTagCount: 0, receiveCompletion: (offset) => device.consume(offset) },
    messageSender: {
      canSend: () => device.canSend(POSTED),
      sendMessage: (address, value) => {
        data.setUint32(0, value, true);
        memoryWrite(device, {
          address,
          trafficClass: 11,
          source: new Uint8Array(data.buffer),
          lengthBytes: 4,
        });
      },
    },
  });
  device.connect({
    receiver: fn.blocks.ingress,
    posted: [fn.blocks.egress],
    nonPosted: [],
    completion: [fn.blocks.egress],
  });
  const settle = (): void => {
    const untilPs = Math.max(deviceLp.nowPs, hostLp.nowPs) + 10_000_000;
    bench.run(untilPs);
    deviceLp.nowPs = untilPs;
    hostLp.nowPs = untilPs;
  };
  const port = rootComplex.corePort(0);
  const access: ConfigAccess = {
    readConfig32: (id, offset) => {
      const answer = new Promise<number>((resolve) =>
        port.cpuConfigRead(id, offset, (_status, value) => resolve(value)),
      );
      settle();
      return answer;
    },
    writeConfig32: (id, offset, value) => {
      const answer = new Promise<void>((resolve) => port.cpuConfigWrite(id, offset, value, () => resolve()));
      settle();
      return answer;
    },
  };
  return { ...bench, fn, target, domain, access, settle };
}

describe('the function with a real root complex', () => {
  it('is enumerated, answers loads, and accepts stores at its assigned addresses', async () => {
    const { access, rootComplex, target, settle } = machine();
    const config = defaultsOf(enumerationParameters);
    expect(await enumerateFunction(access, 0x0108, config, 'none')).toBeUndefined();
    const found = (await enumerateFunction(access, 0x0100, config, 'memoryAndBusMaster'))!;
    expect([found.vendorId, found.deviceId]).toEqual([0x15b3, 0x1003]);
    const value = new Promise<number>((resolve) =>
      rootComplex.cpuLoad(0, found.bars[0]!.address + 0x80698, 4, (_status, read) => resolve(read)),
    );
    settle();
    expect((await value) >>> 0).toBe(0xabaa_a9a8);
    rootComplex.cpuStore(0, found.bars[2]!.address + 0x18, Uint8Array.of(1, 2, 3, 4), 0, 4, 0);
    settle();
    expect(target.writes).toMatchObject([{ bar: 2, offset: 0x18, bytes: [1, 2, 3, 4] }]);
    expect(rootComplex.log.entries).toEqual([]);
  });

  it('PCI Local Bus 6.8.2: delivers an MSI-X message to the interrupt controller', async () => {
    const { access, fn, domain, deviceLp, rootComplex, interrupts, settle } = machine();
    const found = (await enumerateFunction(
      access,
      0x0100,
      defaultsOf(enumerationParameters),
      'memoryAndBusMaster',
    ))!;
    const table = found.bars[0]!.address + 0x7c000;
    const dword = (value: number) => new Uint8Array(Uint32Array.of(value).buffer);
    rootComplex.cpuStore(0, table, dword(MESSAGE_ADDRESS), 0, 4, 12);
    rootComplex.cpuStore(0, table + 8, dword(0x41), 0, 4, 12);
    rootComplex.cpuStore(0, table + 12, dword(0), 0, 4, 12);
    settle();
    await access.writeConfig32(0x0100, 0x9c, 0x8000_0000);
    fn.requestInterrupt(0, domain.clock.cycleAtOrAfter(deviceLp.nowPs));
    settle();
    expect(interrupts.map((line) => line.replace(/^\d+ /, ''))).toEqual(['fee00000 65']);
  });
});
