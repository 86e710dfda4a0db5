import { testScenario } from './suite.ts';

await testScenario('two-guests', 'debian');
