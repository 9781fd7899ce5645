const x: number = 1;
console.log('cli', process.version, process.argv.slice(2), x);
