/**
 * Guests that act as no driver does: one that is killed while data moves, and one that stores random values everywhere. The
 * server must stay up, answer within its time, and offer the next guest a device like new.
 */
import { bar0 } from '../../../abi/index.ts';
import { loadWithoutWarning, pingPong, unload } from './driver.ts';
import type { Scenario, Step } from './scenario.ts';
import { ScenarioFailure, type Stage } from './stage.ts';

/** "Never a hang over 5 s": the server's limit for an answer. */
const answerMs = 5000;
const storeCount = 300;
const hcrOffset = bar0.registers.hcr.offset;

/** Bytes of payload that the device has read so far. */
async function payloadBytes(stage: Stage): Promise<number> {
  const { nodes } = await stage.qemuSession.machine.report();
  return nodes[0]!.pcie.toDevice.classes['payloadRead']?.bytes ?? 0;
}

/** The server answers in time, and its model has not thrown. */
async function expectUp(stage: Stage): Promise<void> {
  const startMs = performance.now();
  const { defects } = await stage.qemuSession.machine.report();
  const takenMs = Math.round(performance.now() - startMs);
  if (takenMs > answerMs) throw new ScenarioFailure(`the server took ${takenMs} ms to answer`);
  if (defects.length > 0) throw new ScenarioFailure(`${defects[0]!.access}: ${defects[0]!.message}`);
}

/** The next guest finds a working device. */
async function expectNextGuest(stage: Stage): Promise<string> {
  await stage.qemuSession.replaceGuest(0);
  await loadWithoutWarning(stage);
  await pingPong(stage);
  await expectUp(stage);
  return `guest number ${(await stage.qemuSession.machine.report()).nodes[0]!.sessions}`;
}

/** Number of the guest's writes to BARs and configuration space. */
async function writes(stage: Stage): Promise<number> {
  const { nodes } = await stage.qemuSession.machine.report();
  const { configuration, registers, doorbells } = nodes[0]!.accesses;
  const counts = [configuration, ...Object.values(registers), ...Object.values(doorbells)];
  return counts.reduce((sum, count) => sum + count.writes, 0);
}

/**
 * Stores at random into registers, the command register among them, and doorbells; finally into the capabilities of
 * configuration space, which may put the device to sleep. The values are drawn from a fixed seed; the device is bus master, so
 * it may write anywhere in the guest's memory because of them.
 */
const storeAnywhere = `set -- $(cut -d' ' -f1 /sys/bus/pci/devices/0000:01:00.0/resource)
setpci -s 01:00.0 COMMAND=6
awk -v bar0="$1" -v bar2="$3" -v count=${storeCount} 'BEGIN {
  srand(1)
  for (at = 0; at < count; at++) {
    value = sprintf("0x%08x", int(rand() * 4294967296))
    pick = rand()
    if (at > 0.9 * count) printf "setpci -s 01:00.0 %x.l=%s\\n", 64 + 4 * int(rand() * 48), substr(value, 3)
    else if (pick < 0.3) print "devmem $((" bar0 " + " 4 * int(rand() * 262144) ")) 32 " value
    else if (pick < 0.7) print "devmem $((" bar0 " + ${hcrOffset} + " 4 * int(rand() * 7) ")) 32 " value
    else print "devmem $((" bar2 " + " 4096 * int(rand() * 2048) + 4 * int(rand() * 512) ")) 32 " value
  }
}' >/run/stores
sh /run/stores`;

const steps: readonly Step[] = [
  {
    title: 'a guest that is killed while data moves leaves the server up',
    async run(stage) {
      await stage.check("test-server 'ib_write_bw -D 60'; (ib_write_bw -D 60 localhost) >/dev/null 2>&1 &");
      const before = await payloadBytes(stage);
      while ((await payloadBytes(stage)) < before + 1_000_000) await stage.check('sleep 0.1');
      await stage.qemuSession.guest(0).dispose();
      await expectUp(stage);
      return undefined;
    },
  },
  { title: 'the next guest finds the device as it was at power-on', run: expectNextGuest },
  {
    title: `a guest that makes ${storeCount} stores at random is answered, and the server is up`,
    async run(stage) {
      await unload(stage);
      const before = await writes(stage);
      await stage.check(storeAnywhere);
      await expectUp(stage);
      const arrived = (await writes(stage)) - before;
      if (arrived < storeCount) throw new ScenarioFailure(`only ${arrived} of its writes arrived`);
      return `${arrived} writes`;
    },
  },
  { title: 'and so does the guest after it', run: expectNextGuest },
];

export const roughGuests: Scenario = {
  name: 'rough-guests',
  title: 'guests that are killed, and that store at random',
  hcas: 1,
  isCabled: false,
  guests: 1,
  faults: [],
  needsQemu: 'it kills and replaces guests',
  isLoaded: true,
  steps,
};
