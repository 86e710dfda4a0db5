/** The cable between two HCAs of a machine, according to its ports. */
import { ConfigurationError } from '../../base/index.ts';
import type { MachineConfig } from '../../machine/profile/index.ts';
import { type CableFigures, infinibandFigures, iwarpFigures, roceFigures } from '../../wire/index.ts';

/** @throws ConfigurationError for Ethernet ports without RoCE, which carry no messages */
export function cableOf({
  hca,
  wire,
  ethernet,
  driver,
}: Pick<MachineConfig, 'hca' | 'wire' | 'ethernet' | 'driver'>): CableFigures {
  const { linkLayer, roce, transport } = hca.capability;
  if (transport === 'iwarp') {
    const { tcpTimestamps: hasTimestamps, mpaMarkers: hasMarkers } = driver;
    return iwarpFigures(ethernet, { hasTimestamps, hasMarkers });
  }
  if (linkLayer === 'infiniband') return infinibandFigures(wire);
  if (roce === 'none') throw new ConfigurationError('hca.capability.roce', roce, 'v1 or v2 on Ethernet');
  return roceFigures(ethernet, roce);
}
