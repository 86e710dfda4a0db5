/** Actions of scenarios with the drivers: loading, unloading, and checking the kernel's messages. */
import { ScenarioFailure, type Stage } from './stage.ts';

/** Binds the first adapter to the loaded driver, and unbinds it. */
export const bind = (stage: Stage): string => echoed(stage, 'bind');
export const unbind = (stage: Stage): string => echoed(stage, 'unbind');

const echoed = ({ session }: Stage, file: string): string =>
  `echo ${session.adapterAddress(0)} >/sys/bus/pci/drivers/mlx4_core/${file}`;

/** Modules in unloading order, without the Ethernet driver: a guest may not have loaded it. */
const driverModules = ['rdma_ucm', 'rdma_cm', 'ib_umad', 'mlx4_ib', 'mlx4_core'];
const withoutEthernet = '{ ! lsmod | grep -q ^mlx4_en || rmmod mlx4_en; }';

/** Loads the drivers and waits for the port; the kernel must not have warned. */
export async function loadWithoutWarning(stage: Stage): Promise<void> {
  const mark = await stage.markMessages();
  await stage.session.load();
  await expectNoWarning(stage, mark);
}

/** Unloads the drivers, which must leave nothing loaded and cause no warning. */
export async function unload(stage: Stage): Promise<void> {
  const mark = await stage.markMessages();
  await stage.check(`${withoutEthernet} && rmmod ${driverModules.join(' ')}`);
  await expectNoWarning(stage, mark);
  const left = await stage.check('grep -c mlx4 /proc/interrupts; true');
  if (left.trim() !== '0') throw new ScenarioFailure(`the driver left interrupts: ${left}`);
}

/** Unloads loaded drivers, after an error. */
export async function unloadAnyhow(stage: Stage): Promise<void> {
  await stage.check(
    `for module in mlx4_en ${driverModules.join(' ')}; do rmmod $module 2>/dev/null; done; ! lsmod | grep mlx4`,
  );
}

/** Tries to load mlx4_core, which must not find a usable device, and stays loaded. @returns the kernel's messages */
export async function loadWithoutSuccess(stage: Stage): Promise<string> {
  const mark = await stage.markMessages();
  await stage.check('modprobe mlx4_core; sleep 0.1; ! ls /sys/class/infiniband/mlx4_0 2>/dev/null');
  return await stage.messagesSince(mark);
}

/** A message that crosses the adapter and returns with the right bytes. */
export const pingPong = (stage: Stage, options = ''): Promise<string> =>
  stage.pair({
    server: `ibv_rc_pingpong -c -n 50 ${options}`,
    client: `ibv_rc_pingpong -c -n 50 ${options} localhost`,
  });

/** The kernel must not have warned since the mark. @throws ScenarioFailure */
export async function expectNoWarning(stage: Stage, mark: number): Promise<void> {
  const warnings = await stage.warningsSince(mark);
  if (warnings.length > 0) throw new ScenarioFailure(`the kernel warned:\n${warnings.join('\n')}`);
}

/** Waits until the function answers again: until then its configuration space reads as all ones. */
export async function waitUntilBack(stage: Stage): Promise<void> {
  const address = stage.session.adapterAddress(0);
  await stage.check(`until [ "$(setpci -s ${address} VENDOR_ID)" = 15b3 ]; do sleep 0.2; done`);
}

/** Removes the adapter from the bus and finds it again, as after an exchange of cards. */
export async function rescan(stage: Stage): Promise<void> {
  const device = `/sys/bus/pci/devices/${stage.session.adapterAddress(0)}`;
  await stage.check(
    `echo 1 >${device}/remove; sleep 0.2; echo 1 >/sys/bus/pci/rescan; sleep 0.2; grep 15b3 ${device}/vendor`,
  );
}
