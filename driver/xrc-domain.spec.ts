/** Domains of files that several processes open and close concurrently: one process' call is in progress when another's arrives. */
import { beforeEach, expect, it } from 'vitest';
import { CapabilityFlag } from '../abi/index.ts';
import type { Device } from './device.ts';
import type { Cpu } from './platform.ts';
import { TestContext } from './testing-context.ts';
import { OpenFlag } from './uapi.ts';
import type { XrcDomain } from './xrc-domain.ts';

const file = 7;
let device: Device;
let cpu: Cpu;

beforeEach(async () => {
  const { driver, machine } = await TestContext.open();
  const { limits } = driver.device;
  const capabilityFlags = limits.capabilityFlags | (1n << BigInt(CapabilityFlag.XRC));
  device = { ...driver.device, limits: { ...limits, capabilityFlags } };
  ({ cpu } = machine);
});

const open = (): Promise<XrcDomain> => device.xrcDomains.open(cpu, device, 5, file, OpenFlag.O_CREAT);
const close = (domain: XrcDomain): Promise<void> => device.xrcDomains.close(cpu, device, domain);

it('two processes that open the domain of a file at the same time get the same one', async () => {
  const [one, other] = await Promise.all([open(), open()]);
  expect(other).toBe(one);
  expect(one.openers).toBe(2);
  await close(one);
  expect(await open()).toBe(one);
});

it('a process that opens a domain while its last opener closes it gets another one, which remains', async () => {
  const first = await open();
  const [, second] = await Promise.all([close(first), open()]);
  expect(second).not.toBe(first);
  expect([first.openers, second.openers]).toEqual([0, 1]);
  expect(await open()).toBe(second);
});
