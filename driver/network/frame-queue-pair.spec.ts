/** The ring of an Ethernet port releases everything it allocated, also if bringing it up fails. */
import { expect, it } from 'vitest';
import { TestContext } from '../testing-context.ts';
import { FrameQueuePair } from './frame-queue-pair.ts';

const setup = { portNumber: 1, qpn: -1, frameBytesMax: 1518 };

it('a ring without available frames uses neither a number nor memory', async () => {
  const { machine, driver } = await TestContext.open();
  const { device } = driver;
  const left = (): number[] => [
    device.numbers.qps.available,
    device.numbers.pds.available,
    machine.framesTaken,
  ];
  const before = left();
  // Enough for its queues, completions and records, but not for its buffers.
  machine.framesLeft = machine.framesTaken + 5;
  await expect(FrameQueuePair.open(machine.cpu, device, setup, () => undefined)).rejects.toThrow('ENOMEM');
  expect(left()).toEqual(before);
});

it('accepts as many frames as its send queue has slots minus one, and releases everything', async () => {
  const { machine, driver } = await TestContext.open();
  const { qps, pds } = driver.device.numbers;
  const before = [qps.available, pds.available, machine.framesTaken];
  const ring = await FrameQueuePair.open(machine.cpu, driver.device, setup, () => undefined);
  const posted = Array.from({ length: 32 }, () => ring.post(machine.cpu, new Uint8Array(60)));
  expect(posted.filter(Boolean)).toHaveLength(31);
  await ring.close(machine.cpu);
  expect([qps.available, pds.available, machine.framesTaken]).toEqual(before);
});
