/** Data moved over every arrangement of adapters: one that talks to itself, two with a cable, and two guests. */
import { countersStep } from './counters.ts';
import { allSizesSteps, perftestSteps, pingPongSteps, type Route } from './data-tests.ts';
import type { Scenario, Step } from './scenario.ts';
import { embeddedManagerSteps, ownManagerStep } from './subnet-manager.ts';

const loopbackRoute: Route = {
  serverDevice: 'mlx4_0',
  clientDevice: 'mlx4_0',
  host: 'localhost',
  run: (stage, test) => stage.pair(test),
};

const cableRoute: Route = { ...loopbackRoute, clientDevice: 'mlx4_1' };

const guestsRoute: Route = {
  serverDevice: 'mlx4_0',
  clientDevice: 'mlx4_0',
  host: 'guest1',
  run: (stage, test) => stage.pairAcross(test),
};

const everyKind = (route: Route): Step[] => [...pingPongSteps(route), ...perftestSteps(route)];

export const loopback: Scenario = {
  name: 'loopback',
  title: 'every kind of traffic over one adapter that talks to itself',
  hcas: 1,
  isCabled: false,
  guests: 1,
  faults: [],
  isLoaded: true,
  steps: [
    ...everyKind(loopbackRoute),
    ...allSizesSteps(loopbackRoute, 'bw', ['read', 'send']),
    ownManagerStep,
  ],
};

export const cable: Scenario = {
  name: 'cable',
  title: 'every kind of traffic between two adapters of a guest',
  hcas: 2,
  isCabled: true,
  guests: 1,
  faults: [],
  isLoaded: true,
  steps: [countersStep, ...everyKind(cableRoute), ...allSizesSteps(cableRoute, 'lat', ['write'])],
};

export const twoGuests: Scenario = {
  name: 'two-guests',
  title: 'two guests on two adapters',
  hcas: 2,
  isCabled: true,
  guests: 2,
  faults: [],
  isLoaded: true,
  steps: [
    ...pingPongSteps(guestsRoute).slice(0, 3),
    ...perftestSteps(guestsRoute).slice(0, 4),
    ...embeddedManagerSteps,
  ],
};
