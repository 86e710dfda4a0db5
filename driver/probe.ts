/**
 * Probe: from a PCI function to a device with active ports, in the order of the interface sheet 8.1. Every step that acquires a
 * resource pushes its inverse on the teardown; if a later step fails, everything is released.
 *
 *   PCI · owner · reset · firmware · limits · ICM · INIT_HCA · interrupts and EQs · event mode · special QPs · ports
 */
import {
  boardIdText,
  icmPageBytes,
  initHca,
  ModStatCfgForm,
  modStatCfg,
  PortType,
  queryAdapter,
} from '../abi/index.ts';
import {
  type DeviceLimits,
  type Firmware,
  hasIwarp,
  type PortLimits,
  queryFirmware,
  queryLimits,
  queryPortLimits,
  specialQpBaseOf,
} from './capabilities.ts';
import { CommandInterface } from './command-interface.ts';
import type { Device, IcmTables } from './device.ts';
import { DeviceLifecycle } from './device-lifecycle.ts';
import { donate, givePages, leaveToDevice, takePages } from './donation.ts';
import { EthernetPort, ethernetPortOf } from './ethernet-port.ts';
import { EventRouter } from './event-router.ts';
import { type IcmProfile, icmProfileOf, initHcaValues, mappedTables } from './icm-profile.ts';
import { IcmTable } from './icm-table.ts';
import { setUpInterrupts } from './interrupts.ts';
import { IwarpPort } from './iwarp/iwarp-port.ts';
import { IwarpQps } from './iwarp/iwarp-qps.ts';
import { KernelError } from './kernel-error.ts';
import { MttTable } from './mtt-table.ts';
import { MulticastTable } from './multicast-table.ts';
import { numberSpacesOf } from './numbers.ts';
import { Pager } from './on-demand/index.ts';
import type { DriverConfig } from './parameters.ts';
import { enableFunction, type SavedConfiguration } from './pci.ts';
import { disableBusMaster } from './pci-function.ts';
import type { Cpu, DriverPlatform } from './platform.ts';
import { Port } from './port.ts';
import { releaseOwnership, resetDevice, takeOwnership } from './reset.ts';
import type { Teardown } from './teardown.ts';
import { XrcDomains } from './xrc-domain.ts';

/** State that the steps share while they bring the device up. */
interface Probe {
  readonly cpu: Cpu;
  readonly platform: DriverPlatform;
  readonly config: DriverConfig;
  readonly commands: CommandInterface;
  readonly lifecycle: DeviceLifecycle;
  readonly teardown: Teardown;
}

/** Brings the device up; on an error, everything acquired so far has been released. */
export async function probeDevice(
  cpu: Cpu,
  name: string,
  platform: DriverPlatform,
  config: DriverConfig,
  teardown: Teardown,
): Promise<Device> {
  const lifecycle = new DeviceLifecycle();
  const commands = new CommandInterface(platform, config, lifecycle);
  try {
    return await bringUp({ cpu, platform, config, commands, lifecycle, teardown }, name);
  } catch (error) {
    await teardown.run(cpu);
    throw error;
  }
}

async function bringUp(probe: Probe, name: string): Promise<Device> {
  const { cpu, platform, config, commands, lifecycle, teardown } = probe;
  const configuration = await takeFunction(probe);
  const firmware = await startFirmware(probe);
  const limits = await queryLimits(cpu, commands, platform);
  const portLimits = await queryPorts(probe, limits);
  const profile = icmProfileOf(limits, config, platform.memory.sizeBytes / icmPageBytes);
  const icm = await mapIcm(probe, profile);
  await initialise(probe, limits, profile);
  const router = new EventRouter(platform.memory, (token, status, immediate) =>
    commands.completeByEvent(token, status, immediate),
  );
  const mtts = new MttTable(platform.memory, icm.mtt, profile.reserved.mtt);
  const adapter = await commands.query(cpu, 'QUERY_ADAPTER', {}, (bytes, at) =>
    queryAdapter.decode(bytes, at),
  );
  const environment = {
    platform,
    commands,
    mtts,
    updateInterval: config.eqUpdateInterval,
    dispatch: (address: number) => router.dispatch(address),
  };
  const interrupts = { ...environment, config, limits, firmware, legacyPin: adapter.interruptPin };
  const { asyncEq, completionEqs } = await setUpInterrupts(cpu, interrupts, teardown);
  commands.onLateEvent((thread) => asyncEq.handleInterrupt(thread));
  await configureSpecialQps(probe, limits);
  const ports = portLimits.map((port, at) => portOf(probe, port, at + 1, limits));
  router.portListeners.add((port, type) => ports[port - 1]?.noteEvent(type));
  const node = await configurePorts(probe, ports);
  const device = {
    name,
    platform,
    config,
    commands,
    lifecycle,
    configuration,
    firmware,
    limits,
    profile,
    icm,
    numbers: numberSpacesOf(limits, profile),
    mtts,
    router,
    xrcDomains: new XrcDomains(() => platform.newSignal()),
    multicast: new MulticastTable(platform, commands, profile.counts.mcg),
    pager: new Pager({ platform, config, commands, lifecycle, router, asyncEq }),
    asyncEq,
    completionEqs,
    ports,
    iwarpQps: hasIwarp(limits) ? new IwarpQps(commands) : undefined,
    boardId: boardIdText(adapter.boardId),
    ...node,
    // Reported when ports are open.
    coreClockMhz: 0,
  };
  device.coreClockMhz = await openPorts(probe, device);
  return device;
}

function portOf(
  { platform, commands, config }: Probe,
  port: PortLimits,
  number: number,
  limits: DeviceLimits,
): Port {
  if (port.supportedTypes !== PortType.ETHERNET) return new Port(platform, commands, number, port);
  const OfEthernet = hasIwarp(limits) ? IwarpPort : EthernetPort;
  return new OfEthernet(platform, commands, number, port, limits, config);
}

/** Steps 1 to 4: the PCI function, its owner register, reset. */
async function takeFunction({
  cpu,
  platform,
  config,
  commands,
  teardown,
}: Probe): Promise<SavedConfiguration> {
  await enableFunction(cpu, platform);
  teardown.push('bus mastering', (thread) => disableBusMaster(thread, platform));
  await takeOwnership(cpu, platform);
  teardown.push('owner register', (thread) => releaseOwnership(thread, platform, config));
  const configuration = await resetDevice(cpu, platform, config);
  teardown.push('mailboxes', () => commands.mailboxes.close());
  return configuration;
}

/** Steps 5 to 7. */
async function startFirmware({ cpu, platform, commands, teardown }: Probe): Promise<Firmware> {
  const firmware = await queryFirmware(cpu, commands);
  const runs = takePages(platform.memory, firmware.firmwarePages);
  teardown.push('firmware pages', () => givePages(platform.memory, runs));
  leaveToDevice(platform.memory, runs);
  await donate(cpu, commands, 'MAP_FA', runs);
  teardown.push('MAP_FA', async (thread) => void (await commands.execute(thread, 'UNMAP_FA')));
  await commands.execute(cpu, 'RUN_FW');
  await commands.executeWithMailbox(
    cpu,
    'MOD_STAT_CFG',
    { opcodeModifier: ModStatCfgForm.SET_PAGE_SIZE },
    (bytes, address) => modStatCfg.encodeInto({ logPageSizeModify: 1 }, bytes, address),
  );
  return firmware;
}

/** Steps 8 and 11; a device that does not report its port ids is accepted, too. */
async function queryPorts({ cpu, commands }: Probe, limits: DeviceLimits): Promise<PortLimits[]> {
  const ports: PortLimits[] = [];
  for (let port = 1; port <= limits.ports; port++) ports.push(await queryPortLimits(cpu, commands, port));
  for (let port = 1; port <= limits.ports; port++) {
    const command = { opcodeModifier: ModStatCfgForm.PORT_ID, inputModifier: port << 8 };
    await ignoringRefusal(commands.query(cpu, 'MOD_STAT_CFG', command, () => undefined));
  }
  return ports;
}

/** Steps 12 and 13. */
async function mapIcm(probe: Probe, profile: IcmProfile): Promise<IcmTables> {
  const { cpu, platform, commands, teardown } = probe;
  const auxiliaryPages = await commands.execute(cpu, 'SET_ICM_SIZE', { input: profile.totalBytes });
  const runs = takePages(platform.memory, Math.max(1, auxiliaryPages));
  teardown.push('auxiliary pages', () => givePages(platform.memory, runs));
  leaveToDevice(platform.memory, runs);
  await donate(cpu, commands, 'MAP_ICM_AUX', runs);
  teardown.push('MAP_ICM_AUX', async (thread) => void (await commands.execute(thread, 'UNMAP_ICM_AUX')));
  const tables: Partial<Record<keyof IcmTables, IcmTable>> = {};
  for (const name of mappedTables) {
    const table = new IcmTable(platform, commands, profile.regions[name]);
    tables[name] = table;
    teardown.push(`ICM ${name}`, (thread) => table.close(thread).finally(() => table.abandon()));
    await table.mapReserved(cpu, profile.reserved[name]);
  }
  return tables as IcmTables;
}

/** Step 14. */
async function initialise(
  { cpu, commands, teardown }: Probe,
  limits: DeviceLimits,
  profile: IcmProfile,
): Promise<void> {
  await commands.executeWithMailbox(cpu, 'INIT_HCA', {}, (bytes, address) => {
    initHca.encodeInto(initHcaValues(limits, profile), bytes, address);
  });
  teardown.push('INIT_HCA', async (thread) => void (await commands.execute(thread, 'CLOSE_HCA')));
}

/** Step 27. */
async function configureSpecialQps({ cpu, commands, teardown }: Probe, limits: DeviceLimits): Promise<void> {
  await commands.execute(cpu, 'CONF_SPECIAL_QP', { inputModifier: specialQpBaseOf(limits) });
  teardown.push('special QPs', async (thread) => void (await commands.execute(thread, 'CONF_SPECIAL_QP')));
}

/** Steps 28 and 29. */
async function configurePorts(
  { cpu }: Probe,
  ports: readonly Port[],
): Promise<{ nodeGuid: bigint; systemImageGuid: bigint }> {
  const masks: number[] = [];
  for (const port of ports) masks.push((await port.portInfo(cpu)).capabilityMask);
  for (const [at, port] of ports.entries()) await port.configure(cpu, masks[at]!);
  await ports[0]!.nodeDescription(cpu);
  const { nodeGuid, systemImageGuid } = await ports[0]!.nodeInfo(cpu);
  return { nodeGuid, systemImageGuid };
}

/**
 * Section 8.2 as far as it concerns a driver without kernel consumers; for Ethernet, section 8.3. A frame may arrive as soon as
 * a port is open, so its ring is created first. @returns the core clock, in MHz
 */
async function openPorts({ cpu, config, commands, teardown }: Probe, device: Device): Promise<number> {
  const { ports } = device;
  for (const port of ports) {
    const name = `port ${port.number}`;
    await ethernetPortOf(port)?.openInterface(cpu, device, (close) =>
      teardown.push(`interface of ${name}`, close),
    );
    await port.init(cpu);
    teardown.push(name, (thread) => port.close(thread));
  }
  const { coreClockMhz } = await commands.query(cpu, 'QUERY_HCA', {}, (bytes, at) =>
    initHca.decode(bytes, at),
  );
  for (const port of ports) await port.waitUntilActive(cpu, config.portActiveLimitUs);
  return coreClockMhz;
}

/** Waits for a command whose failure only disables a feature. */
async function ignoringRefusal(command: Promise<unknown>): Promise<void> {
  try {
    await command;
  } catch (error) {
    if (!(error instanceof KernelError) || error.code === 'ETIMEDOUT') throw error;
  }
}
