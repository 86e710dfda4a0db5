/** A PC without software, in whose place a station speaks TCP on its Ethernet; and the program of a simulated host beside it. */
import { describe, expect, it } from 'vitest';
import { defaultsOf, fromHex, outsideOfMicrotasks } from '../../base/index.ts';
import { parsedTopology } from '../../machine/topology/index.ts';
import { devicesOrderOf } from '../serve/index.ts';
import { echo } from '../serve/testing/peer-programs.ts';
import { coreCode } from './core-code.ts';
import { pcParameters } from './parameters.ts';
import { PcMachine } from './pc-machine.ts';
import { TcpStation } from './tcp-station.ts';
import { code, kernelOf } from './testing/machine-code.ts';

const network = { pc: 0x0a00_020f, peer: 0x0a00_0264, port: 18_515 };

async function machineOn(topology: string | undefined): Promise<PcMachine> {
  const { config, cabling, fabric, faults } = devicesOrderOf({
    ...(topology === undefined ? {} : { topology: parsedTopology(topology) }),
    peer: { run: { url: 'file:///unused' } },
  });
  const machine = await PcMachine.make({
    ...{ coreCode: coreCode(), config, pc: { ...defaultsOf(pcParameters), memoryMib: 128 }, pcCount: 1 },
    ...{ cabling, fabric, faults, analysis: undefined, seed: 1 },
    peer: { program: { name: 'echo', run: echo, args: null }, onValue: () => {}, network },
  });
  machine.load([kernelOf(code.halt)]);
  return machine;
}

describe('the program of a simulated host beside a PC', () => {
  it.each([
    ['at the other end of its cable', undefined],
    ['at another port of its switch', 'star:3'],
  ])('is reached by TCP %s, byte for byte, and ends its connections', async (_, topology) => {
    const machine = await machineOn(topology);
    const [pc] = machine.pcs;
    const received: number[] = [];
    let hasEnded = false;
    const client = new TcpStation(
      {
        mac: fromHex('020000000001'),
        address: network.pc,
        port: 1,
        limits: machine.emulation.plan.config.net.stack,
      },
      {
        established: (connection) => {
          connection.send(Uint8Array.from({ length: 3000 }, (__, at) => at % 256));
          connection.finish();
        },
        arrived: (__, bytes) => received.push(...bytes),
        ended: () => {
          hasEnded = true;
        },
        forgotten: () => {},
      },
    );
    client.onFrame = (frame) => pc!.onFrame(frame);
    pc!.receive = (frame) => client.receive(frame, pc!.clock.nowPs);
    client.connect(network.peer, network.port, pc!.clock.nowPs);
    await outsideOfMicrotasks(() => {
      for (let steps = 0; steps < 200_000 && !hasEnded; steps++) machine.step();
    });
    expect(received).toEqual(Array.from({ length: 3000 }, (__, at) => at % 256));
    expect(machine.emulation.peer!.state()).toMatchObject({ outcome: 'ended', result: 3000 });
    expect(machine.emulation.defects).toEqual([]);
  });
});
