/** All seeded mistakes, by area of the code. */
import { blindSpotMistakes } from './blind-spots.ts';
import { dmaMistakes } from './dma.ts';
import { driverMistakes } from './driver.ts';
import { ethernetMistakes } from './ethernet.ts';
import { fabricMistakes } from './fabric.ts';
import { farNumberMistakes } from './far-numbers.ts';
import { hcaMistakes } from './hca.ts';
import { hostMistakes } from './host.ts';
import { iwarpMistakes } from './iwarp.ts';
import { latencyMistakes } from './latencies.ts';
import type { Mistake } from './mistake.ts';
import { packetMistakes } from './packets.ts';
import { onceFoundMistakes } from './part-b.ts';
import { pcieMistakes } from './pcie.ts';
import { recoveryMistakes } from './recovery.ts';
import { reportMistakes } from './report.ts';
import { userlibMistakes } from './userlib.ts';
import { wireMistakes } from './wire.ts';

export const mistakesByArea: Readonly<Record<string, readonly Mistake[]>> = {
  pcie: pcieMistakes,
  dma: dmaMistakes,
  host: hostMistakes,
  report: reportMistakes,
  hca: hcaMistakes,
  wire: wireMistakes,
  ethernet: ethernetMistakes,
  iwarp: iwarpMistakes,
  packets: packetMistakes,
  driver: driverMistakes,
  userlib: userlibMistakes,
  onceFound: onceFoundMistakes,
  blindSpots: blindSpotMistakes,
  farNumbers: farNumberMistakes,
  fabric: fabricMistakes,
  recovery: recoveryMistakes,
  latencies: latencyMistakes,
};

export const allMistakes: readonly Mistake[] = Object.values(mistakesByArea).flat();
